import pytest
import torch
import torch.nn.functional as F
from torch import nn

from ebnet.errors import ConfigError, ShapeError
from ebnet.nn import BinaryConv2d, BinaryLinear, CondBinaryConv2d, DataDrivenScaling, Precision, Ste, set_precision
from tests.nn.naive import straight_through


@pytest.mark.parametrize("precision", list(Precision))
@pytest.mark.parametrize("settings", [{}, {"stride": 2, "padding": 1}, {"dilation": 2, "padding": "same", "groups": 2}])
def test_binary_conv_is_a_convolution_of_signs(precision: Precision, settings: dict) -> None:
    torch.manual_seed(0)
    layer = BinaryConv2d(4, 6, 3, bias=True, precision=precision, **settings).double()
    layer.scale.data.uniform_(0.5, 2)
    layer.bias.data.normal_()  # type: ignore[union-attr]
    x = torch.randn(2, 4, 9, 8, dtype=torch.float64, requires_grad=True)
    weight = layer.weight if precision != Precision.BINARY else straight_through(layer.weight)
    x_hat = x if precision == Precision.REAL else straight_through(x)
    expected = F.conv2d(x_hat, weight, None, layer.stride, layer.padding, layer.dilation, layer.groups)
    expected = expected * layer.scale.view(1, -1, 1, 1) + layer.bias.view(1, -1, 1, 1)  # type: ignore[union-attr]
    y = layer(x)
    assert torch.allclose(y, expected)
    dy = torch.randn_like(y)
    inputs = [x, *layer.parameters()]
    for mine, theirs in zip(torch.autograd.grad(y, inputs, dy), torch.autograd.grad(expected, inputs, dy), strict=True):
        assert torch.allclose(mine, theirs)


def test_padding_adds_nothing() -> None:
    """A border tap is zero, not minus one: an all-positive picture and kernel count the taps inside it."""
    layer = BinaryConv2d(1, 1, 3, padding=1, precision=Precision.REAL)
    layer.weight.data.fill_(1)
    set_precision(layer, Precision.BINARY)
    y = layer(torch.ones(1, 1, 3, 3))
    assert y.flatten().tolist() == [4, 6, 4, 6, 9, 6, 4, 6, 4]


def test_replaces_a_convolution_in_any_model() -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.Conv2d(8, 8, 3, padding=1))
    old = model[2]
    model[2] = BinaryConv2d(8, 8, old.kernel_size, old.stride, old.padding, old.dilation, old.groups)  # type: ignore[arg-type]
    model(torch.randn(2, 3, 8, 8)).sum().backward()


@pytest.mark.parametrize("outer", [Ste.CLIP, Ste.IDENTITY])
@pytest.mark.parametrize("precision", list(Precision))
def test_cond_conv_binarizes_twice(precision: Precision, outer: Ste) -> None:
    torch.manual_seed(0)
    layer = CondBinaryConv2d(4, 6, 3, 2, 1, groups=2, num_experts=3, precision=precision, outer_ste=outer).double()
    x = torch.randn(5, 4, 6, 6, dtype=torch.float64)
    routing = torch.sigmoid(layer.routing(x.mean((2, 3))))
    weights = layer.weight.view(3, 6, 2, 3, 3)
    rows = []
    for b in range(5):
        experts = straight_through(weights) if precision == Precision.BINARY else weights
        mixture = sum(routing[b, i] * experts[i] for i in range(3))
        if precision == Precision.BINARY:
            hard = torch.where(mixture >= 0, 1.0, -1.0)
            mixture = straight_through(mixture) if outer is Ste.CLIP else mixture + (hard - mixture).detach()
        x_hat = x[b : b + 1] if precision == Precision.REAL else straight_through(x[b : b + 1])
        rows.append(F.conv2d(x_hat, mixture, None, 2, 1, 1, 2))
    expected = torch.cat(rows) * layer.scale.view(1, -1, 1, 1)
    y = layer(x)
    dy = torch.randn_like(y)
    assert torch.allclose(y, expected)
    ours = torch.autograd.grad(y, list(layer.parameters()), dy)
    theirs = torch.autograd.grad(expected, list(layer.parameters()), dy)
    for mine, other in zip(ours, theirs, strict=True):
        assert torch.allclose(mine, other)


def test_scaling_is_a_squeeze_and_excite_of_the_mean() -> None:
    scaling = DataDrivenScaling(4, 16).double()
    assert scaling.squeeze.weight.shape == (2, 4)
    mean = torch.randn(3, 4, dtype=torch.float64)
    hidden = (mean @ scaling.squeeze.weight.T).clamp(min=0)
    assert torch.allclose(scaling(mean), 1 / (1 + torch.exp(-(hidden @ scaling.excite.weight.T))))


@pytest.mark.parametrize("precision", list(Precision))
def test_binary_linear(precision: Precision) -> None:
    torch.manual_seed(0)
    layer = BinaryLinear(5, 3, bias=True, precision=precision).double()
    x = torch.randn(2, 5, dtype=torch.float64)
    weight = layer.weight if precision != Precision.BINARY else torch.where(layer.weight >= 0, 1.0, -1.0).double()
    x_hat = x if precision == Precision.REAL else torch.where(x >= 0, 1.0, -1.0).double()
    assert torch.allclose(layer(x), x_hat @ weight.T * layer.scale)
    with pytest.raises(ShapeError, match="expects 5 features"):
        layer(torch.zeros(2, 4, dtype=torch.float64))
    with pytest.raises(ConfigError, match="at least 1"):
        BinaryLinear(0, 3)


def test_from_scratch_the_outputs_have_the_size_of_the_real_ones() -> None:
    """Binary weights with scale 1 would be sqrt(fan-in) times too large and not train."""
    torch.manual_seed(0)
    layer = BinaryConv2d(64, 64, 3, padding=1, precision=Precision.BINARY_INPUT)
    x = torch.randn(2, 64, 8, 8)
    stage1 = layer(x).std()
    set_precision(layer, Precision.BINARY)
    assert 0.5 < layer(x).std() / stage1 < 1.5
