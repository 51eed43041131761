"""Cells against the authors' description written out by hand, their published numbers, and the way to the engine."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import ebnet
from ebnet.cost import profile
from ebnet.errors import ConfigError, ShapeError
from ebnet.models.cell import Cell, Halving, Pair
from ebnet.models.network import ExpertBinaryNetwork
from ebnet.models.pretrained import load_pretrained
from ebnet.models.registry import network_config
from ebnet.packing.unpack import unpack
from ebnet.packing.verify import verify
from ebnet.train import train
from tests.packing.networks import random_network
from tests.train.tiny import pictures, tiny

BNAS = {"weights": "channel-mean", "unit": "xnor-relu", "stem_width": 8}


def network(arch: str = "bnas-5x4", **settings: object) -> ExpertBinaryNetwork:
    made = random_network(arch, 3, **(BNAS | settings))
    for skip in (layer for layer in made.modules() if isinstance(layer, Halving)):
        nn.init.normal_(skip.conv.bias)  # type: ignore[arg-type]
    return made


def images(count: int = 6, side: int = 16) -> Tensor:
    return torch.randn(count, 3, side, 12, generator=torch.Generator().manual_seed(9))


def batch_norm(x: Tensor, norm: nn.BatchNorm2d) -> Tensor:
    assert norm.running_mean is not None
    assert norm.running_var is not None
    mean, variance = (values.view(-1, 1, 1) for values in (norm.running_mean, norm.running_var))
    return (x - mean) / (variance + norm.eps).sqrt() * norm.weight.view(-1, 1, 1) + norm.bias.view(-1, 1, 1)


def by_hand(cell: Cell, older: Tensor, newer: Tensor, halved: bool, reduction: bool) -> Tensor:
    """BNAS's two cells, convolution by convolution: batch norm, sign, weights of signs times the mean size, ReLU."""
    units = iter(cell.units)

    def conv(x: Tensor, padding: int, stride: int = 1, dilation: int = 1) -> Tensor:
        unit = next(units)
        weight = unit.conv.weight
        signs = torch.where(weight < 0, -1.0, 1.0).to(x.dtype) * weight.abs().mean((1, 2, 3), keepdim=True)
        x = batch_norm(x, unit.norm)
        x = torch.where(x < 0, -1.0, 1.0).to(x.dtype)
        return F.conv2d(x, signs, None, stride, padding, dilation).clamp(min=0)

    def pooled(x: Tensor) -> Tensor:
        padded = F.pad(x, (1, 1, 1, 1), value=float("-inf"))
        return padded.unfold(2, 3, 2).unfold(3, 3, 2).amax((4, 5))

    s0 = conv(older, 1, 2) if halved else conv(older, 0)
    s1 = conv(newer, 0)
    if reduction:
        s2 = pooled(s0) + pooled(s1)
        s3 = pooled(s0) + conv(s2, 1)
        s4 = pooled(s0) + conv(s3, 2, dilation=2)
        s5 = pooled(s0) + conv(s4, 2, dilation=2)
    else:
        s2 = conv(s1, 1) + conv(s0, 2, dilation=2)
        s3 = conv(s1, 1) + conv(s2, 1)
        s4 = conv(s2, 1) + conv(s1, 2, dilation=2)
        s5 = conv(s1, 2, dilation=2) + conv(s0, 1)
    assert next(units, None) is None
    y = torch.cat((s2, s3, s4, s5), 1)
    if not reduction:
        return y + newer if y.shape == newer.shape else y
    skip = cell.shortcut
    assert isinstance(skip, Halving)
    return y + F.conv2d(batch_norm(newer, skip.norm), skip.conv.weight, skip.conv.bias, 2)


@pytest.mark.parametrize("stem", ["cifar", "conv3x3"])
def test_the_authors_cells_in_float64(stem: str) -> None:
    made = network(stem=stem, arch="bnas-6x4").double()
    x = torch.randn(3, 3, 64, 32, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    pair = made.stem(x)
    older, newer = pair if isinstance(pair, Pair) else (pair, pair)
    halved = stem == "conv3x3"
    assert (older.shape[2] == 2 * newer.shape[2]) == halved
    for number, (block, _) in enumerate(made.named_blocks()):
        assert isinstance(block, Cell)
        reduction = number in (2, 4)
        older, newer = newer, by_hand(block, older, newer, halved, reduction)
        halved = reduction
    expected = made.classifier(newer.mean((2, 3)))
    torch.testing.assert_close(made(x), expected, rtol=1e-9, atol=1e-9)


def test_the_stem_is_three_strided_convolutions() -> None:
    stem = network(stem="conv3x3").double().stem
    x = images(side=24).double()
    older = x
    for layer in (stem.conv1, stem.conv2):
        older = batch_norm(F.conv2d(older, layer.conv.weight, None, 2, 1), layer.norm).clamp(min=0)
    newer = batch_norm(F.conv2d(older, stem.conv3.conv.weight, None, 2, 1), stem.conv3.norm)
    torch.testing.assert_close(stem(x), Pair(older, newer))
    torch.testing.assert_close(stem.float()(x.float()), Pair(older.float(), newer.float()), rtol=1e-4, atol=1e-5)


def test_the_parameters_that_the_authors_print() -> None:
    """Their log of BNAS-F on ImageNet: "no of parameters 39781442"; scales of binary weights are not learned."""
    with torch.device("meta"):
        made = ebnet.create_model("bnas-f")
    assert sum(p.numel() for p in made.parameters() if p.requires_grad) == 39_781_442


@pytest.mark.parametrize(("name", "cells", "c"), [("bnas-f", (5, 5, 5), 68), ("bnas-g", (3, 4, 4), 74)])
def test_costs_by_hand(name: str, cells: tuple[int, int, int], c: int) -> None:
    """At 224 x 224. Channels double where pixels quarter, so a cell of any stage costs as much as one of the first."""
    normal = 8 * 9 * c * c * 28**2
    inner = 4 * c * c * 28**2  # a 1x1 from 4 c channels to c
    bops = (cells[0] - 2) * (normal + 2 * inner) + (normal + 9 * c * c * 28**2 + c * c * 28**2)
    bops += normal + c * c * 28**2 + inner  # the second cell reads the stem's c channels
    for stage in (1, 2):
        bops += 3 * 9 * c * c * 28**2 + 2 * 2 * inner  # a reduction: its 1x1 see the larger map
        bops += normal + 9 * 2 * c * c * 28**2 + inner  # after it: 3x3 of stride 2 from half as many channels
        bops += (cells[stage] - 2) * (normal + 2 * inner)
    stem = 9 * (3 * c // 2 * 112**2 + c // 2 * c * 56**2 + c * c * 28**2)
    skips = 4 * (4 * c * 8 * c * 14**2 + 8 * c * 16 * c * 7**2)
    cost = profile(network_config(name))
    macs = {kind: sum(layer.real_macs for layer in cost.layers if layer.kind == kind) for kind in ("stem", "shortcut")}
    assert macs == {"stem": stem, "shortcut": skips}
    assert cost.bops == bops
    assert cost.real_macs == stem + skips + 16 * c * 1000


def test_what_is_counted_is_what_there_is() -> None:
    made = network(experts=2)
    cost = profile(made, 16)
    assert cost.binary_weights == sum(layer.weight.numel() for layer in made.binary_layers().values()) // 2
    sums = {layer.name: layer.elementwise for layer in cost.layers if layer.kind == "fusion"}
    # No skip around the first cell; 32 channels of 8 x 8 around the next, which also adds two pooled maps of 8.
    assert list(sums.items())[:2] == [("1.0.sums", (32 + 8) * 64), ("1.1.sums", 32 * 64)]


def test_everything_learns() -> None:
    made = ebnet.create_model("bnas-4x4", "binary", stem="conv3x3", num_classes=5, experts=2, **BNAS).train()
    made(torch.randn(8, 3, 64, 64)).square().sum().backward()
    still = [name for name, p in made.named_parameters() if p.requires_grad and (p.grad is None or not p.grad.any())]
    assert [name for name in still if "gate" not in name] == []
    assert list(made.through_torch()) == ["ChannelMean weights"]


def test_the_native_core_trains_cells_as_torch_does(monkeypatch: pytest.MonkeyPatch) -> None:
    made = network(precision="binary_input")
    found = []
    for path in ("native", "torch"):
        monkeypatch.setenv("EBNET_TRAIN", path)
        made.zero_grad()
        logits = made(images())
        logits.square().sum().backward()
        found.append([logits.detach(), *(p.grad for p in made.parameters() if p.grad is not None)])
        assert list(made.through_torch()) == ([] if path == "native" else ["EBNET_TRAIN=torch"])
    for native, torchs in zip(*found, strict=True):
        torch.testing.assert_close(native, torchs, rtol=1e-3, atol=1e-4 * float(torchs.abs().max()))


def test_maps_names_and_embeddings() -> None:
    made = network()
    logits, maps = made(images(), "stage")
    assert [tuple(one.shape[1:]) for one in maps] == [(16, 16, 12), (32, 8, 6), (64, 4, 3)]
    torch.testing.assert_close(made.classify(made.embed(images())), logits)
    names = list(made.binary_layers())
    assert names[:3] == ["0.0.0", "0.0.1", "0.0.2"]
    assert len(names) == 3 * 10 + 2 * 5
    assert made.experts(images()).shape == (40, 6)


def test_what_cells_cannot_have_is_told() -> None:
    with pytest.raises(ConfigError, match="branches=2: bnas-5x4 is a network of cells, and they have none"):
        network(branches=2)
    with pytest.raises(ConfigError, match="stem='conv3x3': its two maps are for networks of cells, not for 1111-1-"):
        ebnet.create_model("1111", stem="conv3x3")
    with pytest.raises(ConfigError, match="stem_width=9: the conv3x3 stem needs a multiple of 2"):
        network(stem="conv3x3", stem_width=9)
    with pytest.raises(ShapeError, match="a reduction cell cannot halve a map of 9x6: use images whose sides"):
        network()(images(side=18))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"stem": "conv3x3", "experts": 3},
        {"unit": "real-to-binary", "weights": "learned-scale", "scaling": True},
        {"unit": "react", "activations": "rsign", "experts": 2},
        {"members": 2, "orientations": 4},
    ],
    ids=str,
)
@pytest.mark.parametrize("reals", ["fp32", "fp16"])
def test_the_engine_computes_cells(settings: dict[str, object], reals: str, tmp_path: Path) -> None:
    made = network(**settings)
    engine = ebnet.load(ebnet.pack(made, tmp_path / "net.ebn", reals=reals))  # type: ignore[arg-type]
    seen = torch.randn(6, 3, 32, 64, generator=torch.Generator().manual_seed(4)).numpy()
    result = verify(engine, made, seen)
    assert result.passed, result.to_dict()
    assert result.within_tolerance >= 3
    assert max(layer.max_difference for layer in result.layers if not layer.flipped) < 1


def test_ops_of_a_cell(tmp_path: Path) -> None:
    engine = ebnet.load(ebnet.pack(network("bnas-3x4"), tmp_path / "net.ebn"))
    normal = engine.program[1:12]
    assert [op["op"] for op in normal] == ["binary"] * 10 + ["concat"]
    assert ["skip" in op for op in normal[2:10]] == [False, True] * 4
    assert [op.get("dilation", 1) for op in normal[2:10]] == [1, 2, 1, 1, 1, 2, 2, 1]
    kinds = [op["op"] for op in engine.program[12:22]]
    # Both maps pooled once and added; three convolutions that add themselves to a pooled map; the real skip.
    assert kinds == ["binary"] * 2 + ["maxpool"] * 2 + ["sum"] + ["binary"] * 3 + ["concat", "conv"]
    assert all(op["skip"] == engine.program[16]["in"][0] for op in engine.program[17:20])


def test_whole_numbers_in_the_skips(tmp_path: Path) -> None:
    made = network("bnas-4x16", stem_width=16)
    calibrate = torch.randn(16, 3, 16, 16, generator=torch.Generator().manual_seed(1)).numpy()
    engine = ebnet.load(ebnet.pack(made, tmp_path / "net.ebn", reals="int8", calibrate=calibrate))
    assert any("int8" in op and op["name"].endswith("shortcut") for op in engine.program)
    assert verify(engine, made, images(4).numpy()).passed


def test_they_unpack_again(tmp_path: Path) -> None:
    made = network(weights="learned-scale")
    again = unpack(ebnet.pack(made, tmp_path / "net.ebn"))
    torch.testing.assert_close(again(images()), made(images()), rtol=1e-4, atol=1e-5)


def test_another_skip_is_told(tmp_path: Path) -> None:
    made = network()
    engine = ebnet.load(ebnet.pack(made, tmp_path / "net.ebn"))
    skip = next(layer for layer in made.modules() if isinstance(layer, Halving))
    with torch.no_grad():
        skip.norm.bias[0] += 0.5
    assert verify(engine, made, images().numpy()).tensors_differ == ["1.0.shortcut.norm"]


def test_a_run_from_the_teacher_to_the_engine(tmp_path: Path) -> None:
    """All phases with experts, distillation and mixup; then packed, verified and run."""
    structure = {f"network__{name}": value for name, value in BNAS.items()}
    recipe = tiny(network__arch="bnas-3x4", **structure, schedule__batch_size=24)
    final = load_pretrained(train(recipe, tmp_path / "run", datasets=pictures()).final)
    assert str(final.config.arch) == "bnas-3x4"
    assert all(layer.num_experts == 2 for layer in final.binary_layers().values())
    engine = ebnet.load(ebnet.pack(final, tmp_path / "net.ebn"))
    seen = torch.randn(8, final.config.in_channels, 8, 8, generator=torch.Generator().manual_seed(7)).numpy()
    assert verify(engine, final, seen).passed
    assert engine(seen).shape == (8, final.config.num_classes)
