"""The rows of the paper's comparison: our count beside what is published."""

import json

import pytest
from typer.testing import CliRunner

import ebnet
from ebnet.cli.app import app
from ebnet.cost import profile
from ebnet.models.config import NetworkConfig
from ebnet.models.methods import METHODS, Method
from ebnet.models.quantizers import ACTIVATION_BITS, UNITS, WEIGHT_BITS
from ebnet.models.registry import create_model
from ebnet.nn.activations import ACTIVATIONS, activation_quantizer
from ebnet.nn.weights import WEIGHTS, weight_quantizer

BY_NAME = {method.name: method for method in METHODS}
PUBLISHED = [method for method in METHODS if method.bops is not None]
SHORTCUTS = 56 * 56 // 4 * 64 * 128 + 14 * 14 * 128 * 256 + 7 * 7 * 256 * 512
"""Multiply-accumulates of ResNet-18's three 1x1 shortcuts."""
SHORTCUT_WEIGHTS = 64 * 128 + 128 * 256 + 256 * 512


def config(method: Method) -> NetworkConfig:
    return NetworkConfig.from_dict(method.settings)


@pytest.mark.parametrize("method", PUBLISHED, ids=lambda m: m.name)
def test_binary_operations(method: Method) -> None:
    ours = profile(config(method)).bops
    if method.name == "abc-net-5":
        assert ours == 25 * 1_676_279_808
        assert method.bops == 25 * 1.7
    else:
        assert round(ours / 1e9, 1) == method.bops


@pytest.mark.parametrize("method", PUBLISHED, ids=lambda m: m.name)
def test_real_operations(method: Method) -> None:
    """Those of 1.3e8 come out where the shortcuts are binary too; XNOR-Net++'s 1.4e8 lies between."""
    assert method.flops is not None
    ours = profile(config(method)).flops
    with_binary_shortcuts = ours - SHORTCUTS
    if method.flops == 1.3:
        assert with_binary_shortcuts == pytest.approx(1.3e8, rel=0.045)
    elif method.name == "xnor-net-pp":
        assert with_binary_shortcuts < 1.4e8 < ours
    else:
        assert round(ours / 1e8, 1) == method.flops


def test_sizes() -> None:
    def megabytes(name: str, copies: int = 1) -> float:
        cost = profile(config(BY_NAME[name]))
        return (cost.bytes_fp32 + (copies - 1) * cost.binary_weights // 8) / 1e6

    for name in ("bnn", "xnor-net"):
        assert round(megabytes(name) - SHORTCUT_WEIGHTS * (4 - 1 / 8) / 1e6, 1) == BY_NAME[name].megabytes == 3.5
    assert megabytes("abc-net-5", 5) == pytest.approx(BY_NAME["abc-net-5"].megabytes, abs=0.06)
    r2b, best = profile(config(BY_NAME["real-to-bin"])), profile(config(BY_NAME["ebnet-1262"]))
    assert r2b.bytes_fp16 < 4.0e6 < r2b.bytes_fp32
    assert 7.6e6 < best.bytes_fp16 < 7.8e6


def test_real_activations_make_real_operations() -> None:
    cost, binary = profile(config(BY_NAME["bwn"])), profile(config(BY_NAME["xnor-net"]))
    assert cost.bops == 0
    assert cost.real_macs == binary.real_macs + binary.bops
    assert profile(config(BY_NAME["ttq"])).binary_weights == 2 * cost.binary_weights
    assert profile(config(BY_NAME["qil"])).bops == 4 * binary.bops


def test_bits_are_the_quantizers() -> None:
    assert {name: weight_quantizer(name, (3, 3)).bits for name in WEIGHTS} == WEIGHT_BITS
    assert {name: activation_quantizer(name, 4).bits for name in ACTIVATIONS} == ACTIVATION_BITS


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.name)
def test_bits_are_the_rows(method: Method) -> None:
    made = config(method)
    weights, activations = WEIGHT_BITS[made.weights], ACTIVATION_BITS[made.activations]
    assert method.bits in {f"{weights}/{activations}", f"(1/1)x{weights * activations}"}


@pytest.mark.parametrize("unit", UNITS)
def test_real_parameters_are_the_networks(unit: str) -> None:
    """One count on paper, one of a network's own tensors: what a packed file has to hold of a binary unit."""
    settings = {"stem": "cifar", "shortcut": "none", "num_classes": 10, "activations": "rsign", "unit": unit}
    model = create_model("1212-0.125-1:1:1:1", **settings)
    shown = {layer.name: layer for layer in profile(model, 16).layers if layer.kind == "binary"}
    for name, made in model.units():
        own = sum(p.numel() for key, p in made.named_parameters() if not key.startswith("shortcut"))
        assert shown[name].real_parameters == own - made.conv.weight.numel(), name


def test_every_quantizer_and_unit_is_some_preset() -> None:
    used = [config(method) for method in METHODS]
    assert {made.weights for made in used} == set(WEIGHT_BITS)
    assert {made.activations for made in used} == set(ACTIVATION_BITS)
    assert {made.unit for made in used} == set(UNITS)


def test_names_by_pattern() -> None:
    assert ebnet.list_models("xnor*") == ["xnor-net", "xnor-net-pp"]
    assert set(BY_NAME) < set(ebnet.list_models())


def test_command() -> None:
    shown = CliRunner().invoke(app, ["methods"])
    assert shown.exit_code == 0
    assert all(method.name in shown.stdout for method in METHODS)
    rows = json.loads(CliRunner().invoke(app, ["methods", "--json"]).stdout)
    assert [row["name"] for row in rows] == [method.name for method in METHODS]
    xnor = rows[[row["name"] for row in rows].index("xnor-net")]
    assert xnor["published"] == {"top1": 51.2, "top5": 73.2, "bops": 1.7e9, "flops": 1.3e8, "bytes": 3.5e6}
    assert xnor["counted"]["bops"] == 1_676_279_808
