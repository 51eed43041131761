"""A file is verified as strictly in fp16 as in fp32: damage that changes no class is found, rounding is not damage."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

import ebnet
from ebnet.errors import ConfigError
from ebnet.models.network import ExpertBinaryNetwork
from ebnet.packing.inputs import grown_images, reached
from ebnet.packing.rounded import differing_tensors, rounded
from ebnet.packing.verify import verify
from tests.cli.test_engine_commands import run
from tests.packing.networks import random_network
from tests.tiny_run import TinyRun

ARCH = "1111-0.25-1:2:2:2"


@pytest.fixture(scope="module")
def model() -> ExpertBinaryNetwork:
    return random_network(ARCH, experts=4)


def damaged(path: Path, name: str, flip: float) -> Path:
    """The file with a part of one tensor's bits flipped."""
    with safe_open(path, "numpy") as file:
        metadata = file.metadata()
    tensors = load_file(path)
    rng = np.random.default_rng(0)
    tensor = tensors[name]
    if tensor.dtype == np.uint8:
        mask = np.packbits(rng.random((*tensor.shape, 8)) < flip, axis=-1)[..., 0]
        mask[..., -1] = 0  # bits past the last weight stay 0
        tensors[name] = tensor ^ mask
    else:
        tensors[name] = np.where(rng.random(tensor.shape) < flip, tensor * tensor.dtype.type(1.01), tensor)
    other = path.with_name("damaged.ebn")
    save_file(tensors, other, metadata)
    return other


@pytest.mark.parametrize("reals", ["fp32", "fp16"])
@pytest.mark.parametrize("stream", ["fp32", "fp16", "bf16"])
def test_a_sound_file_passes(model: ExpertBinaryNetwork, reals: str, stream: str, tmp_path: Path) -> None:
    engine = ebnet.load(ebnet.pack(model, tmp_path / "net.ebn", reals=reals), stream=stream)  # type: ignore[arg-type]
    found = verify(engine, model, grown_images(engine, 24))
    assert found.passed, found
    assert found.tensors_differ == []


@pytest.mark.parametrize("reals", ["fp32", "fp16"])
@pytest.mark.parametrize("name", ["2.0.1.bits", "classifier.weight", "1.0.0.norm", "stem.conv.weight"])
def test_damage_is_found(model: ExpertBinaryNetwork, reals: str, name: str, tmp_path: Path) -> None:
    path = ebnet.pack(model, tmp_path / "net.ebn", reals=reals)  # type: ignore[arg-type]
    engine = ebnet.load(damaged(path, name, 0.05))
    found = verify(engine, model, grown_images(engine, 16))
    assert not found.passed
    assert found.tensors_differ == [name]
    assert found.unexplained > 0


def test_the_command_fails_for_a_damaged_half_precision_file(model: ExpertBinaryNetwork, tmp_path: Path) -> None:
    final = model.save_pretrained(tmp_path / "model")
    path = ebnet.pack(model, tmp_path / "net.ebn", reals="fp16")
    assert "passed" in run("verify", path, "--against", final, "--images", 16)
    other = damaged(path, "3.0.0.bits", 0.05)
    text = run("verify", other, "--against", final, "--images", 16, code=1)
    assert "1 tensors are not the network's: 3.0.0.bits" in text
    assert "FAILED" in text
    assert not json.loads(run("verify", other, "--against", final, "--images", 16, "--json", code=1))["passed"]


def test_an_expert_that_is_never_chosen_is_verified_too(tmp_path: Path) -> None:
    model = random_network(ARCH, experts=4)
    for _, unit in model.units():
        unit.conv.gate.linear.bias.data[0] = 99.0  # type: ignore[union-attr, operator, index]
    path = ebnet.pack(model, tmp_path / "net.ebn")
    tensors = load_file(path)
    tensors["0.0.0.bits"][3, 0, 0] ^= 1
    with safe_open(path, "numpy") as file:
        metadata = file.metadata()
    save_file(tensors, path, metadata)
    engine = ebnet.load(path)
    found = verify(engine, model, grown_images(engine, 8))
    assert found.unexplained == 0
    assert found.tensors_differ == ["0.0.0.bits"]
    assert not found.passed


def test_the_rounded_network_is_the_file(model: ExpertBinaryNetwork, tmp_path: Path) -> None:
    """Packed again in full width it gives the half-precision file's numbers."""
    half = ebnet.pack(model, tmp_path / "half.ebn", reals="fp16")
    again = load_file(ebnet.pack(rounded(model, ebnet.load(half)), tmp_path / "again.ebn"))
    for name, array in load_file(half).items():
        np.testing.assert_array_equal(again[name], array.astype(again[name].dtype), err_msg=name)
    assert differing_tensors(ebnet.load(half), model) == []


def test_another_network_is_a_sentence(model: ExpertBinaryNetwork, tmp_path: Path) -> None:
    engine = ebnet.load(ebnet.pack(model, tmp_path / "net.ebn"))
    images = np.zeros((1, 3, 16, 16), np.float32)
    with pytest.raises(ConfigError, match=r"net.ebn tells 7 classes apart, the network 5: it was packed from another"):
        verify(engine, random_network(ARCH, experts=4, num_classes=5), images)
    with pytest.raises(ConfigError, match=r"packed from another network: its op \d+ is .*'experts': 4"):
        verify(engine, random_network(ARCH, experts=2), images)


def test_grown_images_reach_more_than_noise(tmp_path: Path) -> None:
    """On the zoo's trained digits: classes and experts that unit noise does not."""
    engine = ebnet.load("zoo:digits-e4")
    noise = np.random.default_rng(0).standard_normal((64, 1, 28, 28), dtype=np.float32)
    grown = grown_images(engine, 64)
    classes, experts = reached(engine, grown)
    few, fewer = reached(engine, noise)
    assert classes > few
    assert experts > fewer
    assert classes >= 8
    assert experts >= 0.75 * sum(engine.expert_counts)


def test_names_of_earlier_versions_are_understood(model: ExpertBinaryNetwork, tmp_path: Path) -> None:
    path = ebnet.pack(model, tmp_path / "net.ebn")
    with safe_open(path, "numpy") as file:
        metadata = file.metadata()
    program = json.loads(metadata["program"])
    for op in program:
        if "name" in op:
            op["name"] = f"stages.{op['name']}"
    tensors = {f"stages.{name}": array for name, array in load_file(path).items()}
    save_file(tensors, path, metadata | {"program": json.dumps(program)})
    engine = ebnet.load(path)
    assert verify(engine, model, grown_images(engine, 4)).passed


def test_the_runs_own_validation_images_are_used(tiny_run: TinyRun, monkeypatch: pytest.MonkeyPatch) -> None:
    def grown(*_: object) -> None:
        raise AssertionError("images were grown, though the run knows its own")

    monkeypatch.setattr("ebnet.packing.inputs.grown_images", grown)
    text = run("verify", tiny_run.packed, "--against", tiny_run.run, "--images", 12)
    assert "12 images, which reach" in text
    assert "passed" in text
