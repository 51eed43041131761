import pytest
import torch
from torch import nn

import ebnet
from ebnet.cost import profile
from ebnet.cost.memory import measure
from ebnet.cost.paper import PRINTED
from ebnet.errors import ArchError, ConfigError
from ebnet.models.config import NetworkConfig
from ebnet.nn import BinaryConv2d

# Counted by hand and checked against the paper's table, which prints them rounded.
GOLDEN = {
    "1242-2-4:4:16:32": 1_307_787_264,
    "1262-2-4:4:16:32": 1_526_153_216,
    "1282-2-4:4:16:32": 1_744_519_168,
    "1242-2-4:4:8:16": 1_575_124_992,
    "1262-2-4:4:8:16": 1_909_096_448,
    "1282-2-4:4:8:16": 2_243_067_904,
    "1262-2-4:8:8:16": 1_706_786_816,
    "2222-1-1:1:1:1": 1_676_279_808,
}


@pytest.mark.parametrize(("arch", "bops"), GOLDEN.items())
def test_binary_operations(arch: str, bops: int) -> None:
    assert profile(arch, 224).bops == bops


@pytest.mark.parametrize("printed", PRINTED, ids=lambda row: row.name)
def test_rounds_to_what_the_paper_prints(printed) -> None:  # type: ignore[no-untyped-def]
    ours = profile(printed.config)
    assert round(ours.bops / 1e9, 1) == printed.bops
    assert round(ours.flops / 1e8, 1) == printed.flops


def test_resnet18_by_hand() -> None:
    """2222-1 has the binary convolutions of ResNet-18: stages of 64..512 channels on 56..7 pixels."""
    first = 4 * 64 * 64 * 9 * 56**2
    later = sum(
        (c // 2) * c * 9 * (56 // 2**i) ** 2 + 3 * c * c * 9 * (56 // 2**i) ** 2
        for i, c in ((1, 128), (2, 256), (3, 512))
    )
    assert profile("2222-1-1:1:1:1").bops == first + later


def test_real_operations_and_bytes_of_the_best_network() -> None:
    cost = profile(NetworkConfig("1262-2-4:8:8:16", experts=4))  # type: ignore[arg-type]
    stem = 112**2 * (32 * 27 + 32 * 16) + 56**2 * (16 * 32 * 9 + 64 * 64)
    shortcuts = 56**2 * (64 * 16 + 16 * 128) * 4
    gates = 4 * (64 + 2 * 128 + 128 + 5 * 256 + 256 + 17 * 512 + 512 + 5 * 1024)
    assert cost.real_macs == stem + shortcuts + gates + 1024 * 1000
    assert f"{cost.real_macs:.2e}" == "8.42e+07"
    assert f"{cost.flops:.2e}" == "1.09e+08"
    assert cost.ops == cost.bops / 64 + cost.flops
    assert cost.binary_weights == 9_586_688
    assert f"{cost.bytes_fp32 / 1e6:.1f}" == "10.5"
    assert f"{cost.bytes_fp16 / 1e6:.2f}" == "7.66"


CONFIGS = [
    {"arch": "1262-2-4:8:8:16", "experts": 4},
    {"arch": "1121-0.25-1:2:2:4", "experts": 3, "scaling": True, "stem": "cifar", "num_classes": 7},
    {"arch": "1111-0.5-2:2:2:2", "aggregation": False, "shortcut": "none", "stem": "conv7x7", "head_width": 33},
    {"arch": "2111-1:2:1:0.5-1:1:2:4", "experts": 2, "shortcut": "relu", "in_channels": 1},
    {"arch": "1111-0.5-1:1:1:1", "experts": 2, "conv": "cond", "shortcut": "linear"},
]


@pytest.mark.parametrize("settings", CONFIGS, ids=lambda c: c["arch"])
@pytest.mark.parametrize("size", [64, 45])
def test_counts_what_torch_builds_and_runs(settings: dict, size: int) -> None:
    """Parameters from the modules, operations from a real forward pass, sizes not multiples of anything included."""
    model = ebnet.create_model(**settings).eval()
    bops = real = 0

    def count(module: nn.Module, args: tuple, output: torch.Tensor) -> None:
        nonlocal bops, real
        if isinstance(module, BinaryConv2d):
            bops += (
                module.weight[: module.out_channels, ..., 0, 0].numel()
                * module.weight[0, 0].numel()
                * output[0, 0].numel()
            )
        elif isinstance(module, nn.Conv2d):
            real += module.weight.numel() * output[0, 0].numel()
        elif isinstance(module, nn.Linear):
            real += module.weight.numel()

    for module in model.modules():
        module.register_forward_hook(count)
    with torch.no_grad():
        model(torch.randn(1, model.config.in_channels, size, size + 8))
    cost = profile(model, (size, size + 8))
    binary = sum(layer.weight.numel() for layer in model.binary_layers().values())
    assert cost.bops == bops
    mixing = binary if model.config.conv == "cond" else 0
    assert cost.real_macs == real + mixing
    assert cost.binary_weights * model.config.experts == binary
    assert cost.real_parameters == sum(p.numel() for p in model.parameters()) - binary


def test_takes_a_model_a_config_an_arch_or_a_notation() -> None:
    model = ebnet.create_model("1111-0.25-1:1:2:2")
    costs = [profile(n, 64).bops for n in (model, model.config, model.config.arch, "1111-0.25-1:1:2:2")]
    assert len(set(costs)) == 1


def test_wrong_input() -> None:
    with pytest.raises(ArchError):
        profile("126")
    with pytest.raises(ConfigError, match="input_size=0"):
        profile("1262-2-4:8:8:16", 0)


def test_memory_shows_the_papers_contrast() -> None:
    """EBConv adds kilobytes to a convolution, CondConv the megabytes of a mixed weight tensor."""
    plain, expert, cond = measure()
    assert plain.output == expert.output == cond.output == 512 * 16 * 16 * 4
    assert plain.extra == 0
    assert expert.extra < 16 * 1024
    assert cond.extra >= 512 * 512 * 9 * 4
