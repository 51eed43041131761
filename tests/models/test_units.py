"""Units in the orders of other papers, against the same layers written out by hand."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from ebnet.models.block import BinaryUnit
from ebnet.models.network import ExpertBinaryNetwork
from ebnet.models.registry import create_model
from ebnet.nn.rprelu import RPReLU


def small(unit: str, **settings: object) -> ExpertBinaryNetwork:
    torch.manual_seed(2)
    shape = {"num_classes": 4, "stem": "cifar", "stem_width": 8, "shortcut": "none"}
    model = create_model("1211-0.125-1:1:1:1", "binary", unit=unit, **(shape | settings))
    for _, made in model.units():
        torch.nn.init.normal_(made.norm.weight, 1.0, 0.2)
        torch.nn.init.normal_(made.norm.bias, 0.0, 0.3)
        if isinstance(made.act, RPReLU):
            torch.nn.init.normal_(made.act.gamma)
            torch.nn.init.normal_(made.act.zeta)
    return model


def signs(x: Tensor) -> Tensor:
    return torch.where(x >= 0, 1.0, -1.0)


def normal(unit: BinaryUnit, x: Tensor) -> Tensor:
    norm = unit.norm
    mean, variance = x.mean((0, 2, 3), keepdim=True), x.var((0, 2, 3), correction=0, keepdim=True)
    scale, shift = norm.weight.view(-1, 1, 1), norm.bias.view(-1, 1, 1)
    return (x - mean) / torch.sqrt(variance + norm.eps) * scale + shift


def conv(unit: BinaryUnit, x: Tensor) -> Tensor:
    scale = unit.conv.scale.view(1, -1, 1, 1)
    return F.conv2d(signs(x), signs(unit.conv.weight), stride=unit.conv.stride, padding=unit.conv.padding) * scale


def by_hand(unit: str, units: list[BinaryUnit], x: Tensor) -> Tensor:
    first, second = units
    if unit == "xnor":
        y = conv(second, normal(second, conv(first, normal(first, x))))
        return y + second.shortcut(x)  # type: ignore[misc]
    for made in units:
        skip = made.shortcut(x)  # type: ignore[misc]
        if unit == "real-to-binary":
            x = F.prelu(conv(made, normal(made, x)), made.act.weight) + skip  # type: ignore[arg-type]
        elif unit == "xnor-relu":
            x = F.relu(conv(made, normal(made, x))) + skip
        elif unit == "bi-real":
            x = normal(made, conv(made, x)) + skip
        elif unit == "bi-real-prelu":
            x = F.prelu(normal(made, conv(made, x)) + skip, made.act.weight)  # type: ignore[arg-type]
        else:
            act = made.act
            assert isinstance(act, RPReLU)
            shifted = normal(made, conv(made, x)) + skip - act.gamma.view(-1, 1, 1)
            x = torch.where(shifted > 0, shifted, act.weight.view(-1, 1, 1) * shifted) + act.zeta.view(-1, 1, 1)
    return x


@pytest.mark.parametrize("unit", ["real-to-binary", "xnor", "xnor-relu", "bi-real", "bi-real-prelu", "react"])
def test_order_of_layers(unit: str) -> None:
    model = small(unit).train()
    x = torch.randn(3, 8, 8, 8, generator=torch.Generator().manual_seed(4))
    for stage in model.stages:
        for block in stage:  # type: ignore[union-attr]
            expected = by_hand(unit, list(block.units), x)
            x = block(x)
            torch.testing.assert_close(x, expected, rtol=1e-4, atol=1e-4)


def test_skips_of_xnor_go_around_the_block() -> None:
    model = small("xnor")
    for name, unit in model.units():
        assert (unit.shortcut is None) == name.endswith(".0"), name


@pytest.mark.parametrize("experts", [1, 3])
def test_the_native_unit_serves_xnors_order(experts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an activation and with a skip from elsewhere: forward and gradients as through torch."""
    images = torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(5))
    seen = []
    for path in ("native", "torch"):
        monkeypatch.setenv("EBNET_TRAIN", path)
        model = small("xnor", experts=experts).train()
        logits = model(images)
        logits.square().sum().backward()
        assert bool(model.through_torch()) == (path == "torch")
        seen.append((logits.detach(), [p.grad for p in model.parameters()]))
    torch.testing.assert_close(seen[0][0], seen[1][0], rtol=1e-4, atol=1e-4)
    for native, through in zip(seen[0][1], seen[1][1], strict=True):
        torch.testing.assert_close(native, through, rtol=1e-3, atol=1e-3)


def test_other_orders_say_that_they_go_through_torch() -> None:
    model = small("react")
    model(torch.randn(2, 3, 8, 8))
    assert list(model.through_torch()) == ["another order of layers"]


def test_rprelu_in_float64() -> None:
    act = RPReLU(2).double()
    act.gamma.data.copy_(torch.tensor([0.5, -1.0]))
    act.zeta.data.copy_(torch.tensor([0.1, 0.2]))
    x = torch.tensor([[1.0, -2.0], [0.0, 0.5]], dtype=torch.float64).view(2, 2, 1, 1).requires_grad_()
    y = act(x)
    assert y.flatten().tolist() == pytest.approx([0.6, -0.05, -0.025, 1.7])
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.flatten().tolist() == [1.0, 0.25, 0.25, 1.0]
    assert act.gamma.grad is not None
    assert act.gamma.grad.tolist() == [-1.25, -1.25]
