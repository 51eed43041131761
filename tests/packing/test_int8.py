"""Files with int8 layers: their size, what they compute beside torch, how they are calibrated, verified and refused."""

from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

import ebnet
from ebnet.cost.profile import profile
from ebnet.errors import ConfigError, DataError, EbnetError, NonFiniteError
from ebnet.models.network import ExpertBinaryNetwork
from ebnet.packing.file import packed_bytes
from ebnet.packing.folding import folded_norm as folded
from ebnet.packing.inputs import grown_images
from ebnet.packing.int8 import Code, code_of, int8_layers
from ebnet.packing.program import Program
from ebnet.packing.verify import verify
from ebnet.runtime.inspect import inspect
from tests.cli.test_engine_commands import run
from tests.packing.networks import random_network
from tests.tiny_run import TinyRun

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
NETWORKS = [
    ("1221-0.25-1:2:2:4", {"experts": 4}),
    ("1221-0.25-1:2:2:4", {"experts": 2, "stem": "imagenet"}),
    ("1111-0.25-1:1:1:1", {"experts": 3, "stem": "conv7x7", "head_width": 24}),
]


def photographs(count: int, side: int) -> np.ndarray:
    """Pixels with some structure: coarse patterns and noise."""
    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 200, (count, 4, 4, 3)).repeat(side // 4, 1).repeat(side // 4, 2)
    return (coarse + rng.integers(0, 56, (count, side, side, 3))).astype(np.uint8)


def packed(model: ExpertBinaryNetwork, path: Path, side: int) -> Path:
    rules = {"size": side, "mean": list(MEAN), "std": list(STD)}
    return ebnet.pack(model, path, "int8", rules, calibrate=photographs(16, side))


def test_the_papers_network_takes_less_than_6_4_megabytes() -> None:
    model = ebnet.create_model("1262-2-4:8:8:16", experts=4, precision="binary")
    counted = profile(model.config).bytes_int8
    size = len(packed_bytes(model, "int8", calibrate=photographs(1, 64)))
    assert counted < size <= 6_400_000
    assert size / counted - 1 < 0.006


@pytest.mark.parametrize(("arch", "settings"), NETWORKS)
def test_the_engine_computes_what_torch_computes_in_whole_numbers(
    arch: str, settings: dict[str, object], tmp_path: Path
) -> None:
    model = random_network(arch, **settings)
    side = 32 if "stem" not in settings else 64
    engine = ebnet.load(packed(model, tmp_path / "net.ebn", side))
    found = verify(engine, model, grown_images(engine, 24))
    assert found.passed, found
    assert found.within_tolerance >= 20
    assert inspect(tmp_path / "net.ebn").reals == "int8"


def test_a_stem_is_as_near_to_torch_as_its_weights_are(tmp_path: Path) -> None:
    """Pixels are exact, so an output is off by at most half a step of each weight, times what it multiplies; and at the
    edge by what the padding's rounded mean adds. Norms are fp16: 2^-11 of each."""
    model = random_network("1111-0.25-1:1:1:1")
    engine = ebnet.load(packed(model, tmp_path / "net.ebn", 32))
    pixels = photographs(4, 32)
    mean, std = torch.tensor(MEAN)[:, None, None], torch.tensor(STD)[:, None, None]
    images = (torch.from_numpy(pixels).permute(0, 3, 1, 2) / 255 - mean) / std
    with torch.no_grad():
        expected = model.stem(images)
        layer = model.stem.conv  # type: ignore[union-attr]
        scale = torch.from_numpy(folded(layer.norm)[0]).float()[:, None, None]  # type: ignore[union-attr,arg-type]
        weight = layer.conv.weight / std  # type: ignore[union-attr]
        half_step = (weight.abs().amax((1, 2, 3), True) / 128).expand_as(weight)
        zeros = torch.tensor(255 * np.array(MEAN)).round().float()[:, None, None]
        centred = ((images * std + mean) * 255 - zeros).abs() / 255
        bound = torch.nn.functional.conv2d(centred, half_step, padding=1) * scale.abs()
        bound += scale.abs() * weight.abs().sum((1, 2, 3))[:, None, None] * 0.5 / 255
        bound += 2**-10 * (expected.abs() + folded_shift(layer) + bound)
    found = torch.from_numpy(engine.trace(pixels).values[0]).permute(0, 3, 1, 2)
    assert ((found - expected).abs() <= bound + 1e-4).all()
    assert (found - expected).abs().max() > 0


def folded_shift(layer: torch.nn.Module) -> torch.Tensor:
    return torch.from_numpy(np.abs(folded(layer.norm)).sum(0)).float()[:, None, None]  # type: ignore[arg-type]


def test_pixels_and_normalised_reals_give_the_same(tmp_path: Path) -> None:
    engine = ebnet.load(packed(random_network("1111-0.25-1:1:1:1", experts=2), tmp_path / "net.ebn", 32))
    pixels = photographs(5, 32)
    assert engine(pixels).tobytes() == engine(normalised(pixels)).tobytes()


def normalised(pixels: np.ndarray) -> np.ndarray:
    reals = ((pixels / 255 - np.array(MEAN)) / np.array(STD)).astype(np.float32)
    return np.ascontiguousarray(reals.transpose(0, 3, 1, 2))


PLACES = [(0, 0, 0), (1, 3, 9), (2, 20, 15), (0, 31, 16), (2, 31, 31)]
"""Channel, row and column: with others around them, at the border of sixteen, and the last, which is alone."""


@pytest.mark.parametrize("real", [1e4, 1e8, 1e12, 3e38, -1e4, -1e8, -1e12, -3e38])
def test_reals_beyond_all_pixels_are_the_nearest_pixel(real: float, tmp_path: Path) -> None:
    engine = ebnet.load(packed(random_network("1111-0.25-1:1:1:1", experts=2), tmp_path / "net.ebn", 32))
    pixels = photographs(len(PLACES), 32)
    reals = normalised(pixels)
    for image, (channel, row, column) in enumerate(PLACES):
        reals[image, channel, row, column] = real
        pixels[image, row, column, channel] = 255 if real > 0 else 0
    assert engine(pixels).tobytes() == engine(reals).tobytes()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("real", [np.nan, np.inf, -np.inf])
def test_a_real_that_is_not_finite_is_found(real: float, place: tuple[int, int, int], tmp_path: Path) -> None:
    engine = ebnet.load(packed(random_network("1111-0.25-1:1:1:1", experts=2), tmp_path / "net.ebn", 32))
    reals = normalised(photographs(1, 32))
    reals[0][place] = real
    with pytest.raises(NonFiniteError, match="InputNotFinite"):
        engine(reals)


@pytest.mark.parametrize("isa", ["reference", "portable", "avx2", "avx512"])
def test_int8_layers_are_equal_on_every_instruction_set(
    isa: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stem in every bit: what comes after it adds floats in the order of the instruction set."""
    path = packed(random_network("1111-0.25-1:1:1:1", stem="imagenet"), tmp_path / "net.ebn", 64)
    monkeypatch.setenv("EBNET_ISA", "reference")
    expected = ebnet.load(path).trace(photographs(2, 64)).values[5]
    monkeypatch.setenv("EBNET_ISA", isa)
    try:
        engine = ebnet.load(path)
    except EbnetError:
        pytest.skip(f"this CPU has no {isa}")
    assert engine.program[5]["name"] == "stem.mix"
    assert engine.trace(photographs(2, 64)).values[5].tobytes() == expected.tobytes()


def test_a_damaged_weight_is_found(tmp_path: Path) -> None:
    model = random_network("1111-0.25-1:1:1:1", experts=2)
    path = packed(model, tmp_path / "net.ebn", 32)
    tensors = load_file(path)
    with safe_open(path, "numpy") as file:
        metadata = file.metadata()
    tensors["stem.conv.weight"][0, 0, 0, 0] ^= 1
    save_file(tensors, tmp_path / "damaged.ebn", metadata)
    engine = ebnet.load(tmp_path / "damaged.ebn")
    found = verify(engine, model, grown_images(engine, 4))
    assert found.tensors_differ == ["stem.conv.weight"]
    assert not found.passed


def test_small_layers_stay_real(tmp_path: Path) -> None:
    """Those below 2,048 weights and 2^18 multiply-accumulates, counted by hand; a file with all in int8 passes too."""
    model = random_network("1111-0.25-1:1:1:1", experts=2)
    path = packed(model, tmp_path / "net.ebn", 32)
    # The stem and the first shortcut are at 32x32, the others at 16x16, 8x8 and 4x4.
    layers = {op["name"]: "int8" in op for op in ebnet.load(path).program if op["op"] in ("conv", "linear")}
    weights = {name: load_file(path)[f"{name}.weight"].size for name in layers}
    at_32 = {"stem.conv", "0.0.0.shortcut.conv1", "0.0.0.shortcut.conv2"}
    assert {name: weights[name] for name in at_32} == dict(zip(sorted(at_32), (1024, 256, 1728), strict=True))
    assert layers == {name: name in at_32 or weights[name] >= 2048 for name in layers}
    assert len({*layers.values()}) == 2
    with patch("ebnet.packing.int8.worth_int8", lambda *_: True):
        every = ebnet.load(packed(model, tmp_path / "every.ebn", 32))
    assert all("int8" in op for op in every.program if op["op"] in ("conv", "linear"))
    assert verify(every, model, grown_images(every, 8)).passed


@pytest.mark.parametrize(("arch", "settings"), NETWORKS)
@pytest.mark.parametrize("side", [28, 33, 64])
def test_work_is_counted_as_the_engine_counts_it(
    arch: str, settings: dict[str, object], side: int, tmp_path: Path
) -> None:
    model = random_network(arch, **settings)
    program = Program(model)
    engine = ebnet.load(ebnet.pack(model, tmp_path / "net.ebn"))
    seen: list[int] = []
    with patch("ebnet.packing.int8.worth_int8", lambda _, macs: seen.append(macs)):
        int8_layers(program.ops, program.reals, side)
    counted = [row["macs"] for row in engine.profile(photographs(1, 64)[:, :side, :side])]
    assert seen == [macs for macs, op in zip(counted, program.ops, strict=True) if op["op"] in ("conv", "linear")]


def test_layers_that_bytes_pass_between_share_a_code(tmp_path: Path) -> None:
    """Squeeze and mix of the paper's stem read the same map, one of them through a pool and a concatenation."""
    path = packed(random_network("1111-0.25-1:1:1:1", stem="imagenet"), tmp_path / "net.ebn", 64)
    codes = {op["name"]: op["int8"] for op in ebnet.load(path).program if "int8" in op}
    assert codes["stem.conv1"] == "pixels"
    assert codes["stem.squeeze"] == codes["stem.mix"]
    assert codes["stem.squeeze"][1] == 0  # after a ReLU
    assert codes["stem.conv2"] != codes["stem.mix"]


def test_codes() -> None:
    assert code_of(np.zeros(9)) == Code(1.0, 0)
    positive, signed = code_of(np.linspace(0, 5, 999)), code_of(np.linspace(-1, 3, 999))
    assert (positive.zero, round(positive.step, 4)) == (0, round(5 / 255, 4))
    assert signed.zero == round(255 / 4)
    # An outlier is clipped where that costs less than coarser steps for all others.
    many = np.concatenate((np.random.default_rng(0).normal(size=1_000_000), [20.0]))
    assert code_of(many).step < 0.75 * (20 - many.min()) / 255


def test_images_are_needed(tmp_path: Path) -> None:
    model = random_network("1111-0.25-1:1:1:1")
    with pytest.raises(ConfigError, match="needs images to calibrate with"):
        ebnet.pack(model, tmp_path / "net.ebn", "int8")
    with pytest.raises(ConfigError, match="calibrate holds no images"):
        ebnet.pack(model, tmp_path / "net.ebn", "int8", calibrate=photographs(0, 32))
    assert not list(tmp_path.iterdir())


def test_the_command(tiny_run: TinyRun, tmp_path: Path) -> None:
    """Calibrated by the run's own images or by a directory's; a network without either is told what to give."""
    text = run("pack", tiny_run.run, "-o", tmp_path / "own.ebn", "--reals", "int8")
    assert "int8 and fp16 reals" in text
    assert '"passed": true' in run("verify", tmp_path / "own.ebn", "--against", tiny_run.run, "--json")
    assert "reals in int8" in run("inspect", tmp_path / "own.ebn")
    channels = ebnet.load(tmp_path / "own.ebn").preprocessing.in_channels
    for index in range(3):
        pixels = np.random.default_rng(index).integers(0, 256, (40, 40, 3)).astype(np.uint8)
        Image.fromarray(pixels if channels == 3 else pixels[..., 0]).save(tmp_path / f"{index}.png")
    run("pack", tiny_run.run, "-o", tmp_path / "folder.ebn", "--reals", "int8", "--calibrate", tmp_path)
    assert (tmp_path / "own.ebn").stat().st_size < tiny_run.packed.stat().st_size
    with pytest.raises(DataError, match="--calibrate DIR"):
        run("pack", tiny_run.run / "final", "-o", tmp_path / "none.ebn", "--reals", "int8")
    text = run("pack", tiny_run.run, "-o", tmp_path / "a.ebn", "--reals", "fp16", "--calibrate", tmp_path, code=2)
    assert "--calibrate is for --reals int8" in text
