from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from typer.testing import CliRunner

import ebnet
from ebnet.cli.app import app
from ebnet.errors import CheckpointError
from ebnet.models.official import read_official
from ebnet.nn import Precision
from tests.models.official_reference import State, forward, random_state


@pytest.fixture(scope="module")
def state() -> State:
    return random_state([1, 2, 2, 1], 0.25, [1, 2, 2, 4], experts=4, classes=10, seed=3)


@pytest.mark.parametrize("size", [64, 75])
def test_gives_the_released_networks_logits_and_experts(state: State, size: int) -> None:
    model = ebnet.import_official(state)
    assert str(model.config.arch) == "1221-0.25-1:2:2:4"
    assert model.precision is Precision.BINARY
    assert not model.training
    images = torch.randn(5, 3, size, size, generator=torch.Generator().manual_seed(size))
    logits, experts = forward(state, images)
    with torch.no_grad():
        assert torch.allclose(model(images), logits, atol=1e-4)
    assert torch.equal(model.experts(images), experts)
    assert experts.unique().numel() > 1


def test_files(state: State, tmp_path: Path) -> None:
    torch.save({"state_dict": {f"module.{k}": v for k, v in state.items()}}, tmp_path / "a.pth")
    save_file(state, tmp_path / "b.safetensors")
    for name in ("a.pth", "b.safetensors"):
        out = tmp_path / name.replace(".", "_")
        result = CliRunner().invoke(app, ["import-official", str(tmp_path / name), "-o", str(out)])
        assert result.exit_code == 0, result.output
        assert ebnet.load_pretrained(out).config.experts == 4


def test_missing_and_unknown_keys_come_as_one_list(state: State) -> None:
    broken = dict(state)
    del broken["layer2.0.bn1.bias"], broken["layer3.1.conv3.alpha2"]
    broken["layer1.0.extra"] = torch.zeros(1)
    with pytest.raises(CheckpointError) as caught:
        ebnet.import_official(broken)
    for fault in ("missing layer2.0.bn1.bias", "missing layer3.1.conv3.alpha2", "unknown layer1.0.extra"):
        assert fault in str(caught.value)


def test_wrong_shapes_nan_and_other_files(state: State, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"classifier.bias is \(3,\), expected \(10,\)"):
        ebnet.import_official(state | {"fc.bias": torch.zeros(3)})
    with pytest.raises(CheckpointError, match=r"conv1.1.weight holds NaN"):
        ebnet.import_official(state | {"conv1.1.weight": torch.full((32,), float("nan"))})
    with pytest.raises(CheckpointError, match=r"missing layer1.0.conv1.weight"):
        ebnet.import_official({"weight": torch.zeros(3)})
    with pytest.raises(CheckpointError, match="does not exist"):
        read_official(tmp_path / "nothing.pth")
    (tmp_path / "text.pth").write_text("not a checkpoint")
    with pytest.raises(CheckpointError, match="not a readable checkpoint"):
        read_official(tmp_path / "text.pth")


class Hostile:
    def __reduce__(self) -> tuple:
        return (print, ("code from the file ran",))


def test_no_code_in_a_checkpoint_is_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save({"weight": Hostile()}, tmp_path / "hostile.pth")
    with pytest.raises(CheckpointError, match="not a readable checkpoint"):
        read_official(tmp_path / "hostile.pth")
    assert "ran" not in capsys.readouterr().out
