"""The examples do what they say."""

import json
import re
import runpy
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

import ebnet
from ebnet.bulk.sources import shard_images
from ebnet.nn import ExpertBinaryConv2d
from tests.docs.commands import ROOT
from tests.small_data import write_shards
from tests.tiny_run import TinyRun, some_digits


def example(name: str) -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "examples" / f"{name}.py"))


def test_swapped_convolutions_compute_the_same_until_they_are_binary() -> None:
    names = example("swap_convolutions")
    model = names["somebody_elses_model"]().eval()
    images = torch.randn(2, 1, 28, 28)
    before = model(images)
    layers = names["swap_convolutions"](model)
    assert len(layers) == 2
    assert all(isinstance(layer, ExpertBinaryConv2d) for layer in layers)
    torch.testing.assert_close(model.eval()(images), before)


def test_swap_convolutions_learns() -> None:
    accuracy = example("swap_convolutions")["main"]()
    assert list(accuracy) == ["real", "stage I", "stage I, 4 experts", "stage II"]
    assert min(accuracy.values()) > 0.7


def test_unet_finds_strokes() -> None:
    found = example("unet")["main"]()
    assert found["stage II"] > 0.45 > found["before training"]


def test_fine_tuning_ends_in_the_engine(tiny_run: TinyRun, tmp_path: Path) -> None:
    """The tiny run's network has hardly learnt digits; telling odd from even beats guessing all the same."""
    target = tmp_path / "odd-or-even.ebn"
    assert example("fine_tune")["main"](tiny_run.run / "final", target) > 0.6
    assert ebnet.load(target).labels == ["even", "odd"]


def test_c_example_is_built_and_run_elsewhere() -> None:
    """tests/runtime compiles it against the core and runs it; here only: it is the file that the documents show."""
    assert "ebnet_load" in (ROOT / "examples" / "c" / "classify.c").read_text()
    assert '--8<-- "examples/c/classify.c"' in (ROOT / "docs" / "c-api.md").read_text()


@pytest.mark.parametrize("document", ["README.md", "docs/index.md"])
def test_python_blocks_run(
    document: str,
    tiny_run: TinyRun,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "demo").mkdir()
    shutil.copy(tiny_run.packed, tmp_path / "demo" / "net.ebn")
    Image.fromarray(some_digits(10, "val").images[7, :, :, 0]).save(tmp_path / "demo" / "digit.png")
    shutil.copy(tmp_path / "demo" / "digit.png", tmp_path)
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, document, "exec"), {})
    assert "[" in capsys.readouterr().out


def test_a_shard_is_a_task(tiny_run: TinyRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The documented way over many machines, on one."""
    (tmp_path / "demo").mkdir()
    shutil.copy(tiny_run.packed, tmp_path / "demo" / "net.ebn")
    write_shards(tmp_path / "shards")
    for split in ("train", "val"):
        for shard in (tmp_path / "shards" / split).glob("*.tar"):
            shard.rename(tmp_path / "shards" / f"{split}-{shard.name}")
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "many-images.md").read_text(), re.DOTALL)
    exec(compile(block, "docs/many-images.md", "exec"), {})
    rows = [json.loads(line) for file in tmp_path.glob("predictions-*.jsonl") for line in file.open()]
    assert len(rows) == sum(len(shard_images(shard)) for shard in (tmp_path / "shards").glob("*.tar")) > 0
    assert all(row["label"] in "0123456789" for row in rows)
