"""Blocks of branches against the paper's equations written out by hand, and as a program of sums."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

import ebnet
from ebnet.cost import profile
from ebnet.errors import ConfigError
from ebnet.models.group import GroupBlock
from ebnet.models.network import ExpertBinaryNetwork
from ebnet.packing.unpack import unpack
from ebnet.packing.verify import verify

SMALL = {"num_classes": 5, "stem": "cifar", "stem_width": 16, "shortcut": "none"}


def network(branches: int = 3, **settings: object) -> ExpertBinaryNetwork:
    torch.manual_seed(6)
    made = ebnet.create_model("1211-0.25-1:1:1:1", "binary", branches=branches, **(SMALL | settings))
    for block in made.modules():
        if isinstance(block, GroupBlock):
            torch.nn.init.normal_(block.scale, 0.3, 0.2)
            if block.gate is not None:
                torch.nn.init.normal_(block.gate)
    return made.eval()


def images(count: int = 6) -> Tensor:
    return torch.randn(count, 3, 12, 11, generator=torch.Generator().manual_seed(9))


def test_the_papers_equations_in_float64() -> None:
    made = network().double()
    x = made.stem(images().double())
    maps: list[Tensor] = []
    for number, (block, _) in enumerate(made.named_blocks()):
        assert isinstance(block, GroupBlock)
        if number == 0:
            inputs = [x] * 3
            assert block.gate is None
        else:
            assert block.gate is not None
            c = 1 / (1 + torch.exp(-block.gate))
            inputs = [c * own + (1 - c) * x for own in maps]
        maps = [branch(one) for branch, one in zip(block.branches, inputs, strict=True)]
        x = sum((s * own for s, own in zip(block.scale.tolist(), maps, strict=True)), torch.zeros_like(maps[0]))
    torch.testing.assert_close(made(images().double()), made.classifier(x.mean((2, 3))), rtol=1e-10, atol=1e-10)


def test_everything_learns_and_begins_as_the_mean() -> None:
    made = ebnet.create_model("1111-0.25-1:1:1:1", "binary", branches=4, **SMALL).train()
    blocks = [block for block in made.modules() if isinstance(block, GroupBlock)]
    assert all(block.scale.tolist() == [0.25] * 4 for block in blocks)
    assert [block.gate is None for block in blocks] == [True, False, False, False]
    made(images()).square().sum().backward()
    assert all(p.grad is not None and bool(p.grad.abs().sum() > 0) for block in blocks for p in block.parameters(False))


def test_maps_for_attention_are_the_fused_ones() -> None:
    made = network()
    _, maps = made(images(), "block")
    assert [place.shape[1] for place in maps] == [16, 32, 32, 64, 128]


def test_names() -> None:
    names = list(network().binary_layers())
    assert names[:7] == ["0.0.0", "0.0.1", "0.0.0b1", "0.0.1b1", "0.0.0b2", "0.0.1b2", "1.0.0"]


def test_cost() -> None:
    one, three = profile(network(1), 12), profile(network(3), 12)
    assert three.bops == 3 * one.bops
    fusions = {layer.name: layer for layer in three.layers if layer.kind == "fusion"}
    assert len(fusions) == 5
    # Stage 1 begins with 16 channels of 12 x 12 and gives 32 of 6 x 6: a sum of three, and before it three of two.
    assert fusions["1.0.1.fusion"].real_macs == 3 * 32 * 36 + 3 * 2 * 16 * 144
    assert fusions["0.0.1.fusion"].real_macs == 3 * 16 * 144
    own = sum(
        p.numel() for block in network().modules() if isinstance(block, GroupBlock) for p in block.parameters(False)
    )
    assert sum(layer.real_parameters for layer in fusions.values()) == own


@pytest.mark.parametrize("stream", ["fp32", "fp16"])
def test_a_program_of_sums(stream: str, tmp_path: Path) -> None:
    made = network(experts=2)
    engine = ebnet.load(ebnet.pack(made, tmp_path / "net.ebn"), stream=stream)
    kinds = [op["op"] for op in engine.program]
    assert kinds.count("sum") == 5 + 4 * 3
    assert verify(engine, made, images().numpy()).passed


def test_it_unpacks_again(tmp_path: Path) -> None:
    made = network()
    again = unpack(ebnet.pack(made, tmp_path / "net.ebn"))
    torch.testing.assert_close(again(images()), made(images()), rtol=1e-4, atol=1e-5)


def test_other_factors_are_told(tmp_path: Path) -> None:
    made = network()
    engine = ebnet.load(ebnet.pack(made, tmp_path / "net.ebn"))
    block = next(block for block in made.modules() if isinstance(block, GroupBlock))
    with torch.no_grad():
        block.scale[0] += 0.5
    (told,) = verify(engine, made, images().numpy()).tensors_differ
    index = int(told.removeprefix("factors of op "))
    assert engine.program[index]["op"] == "sum"


def test_branches_of_an_ensemble(tmp_path: Path) -> None:
    made = network(2, members=2)
    engine = ebnet.load(ebnet.pack(made, tmp_path / "net.ebn"))
    assert verify(engine, made, images().numpy()).passed
    with pytest.raises(ConfigError, match="branches=0: expected a whole number of at least 1"):
        network(0)
