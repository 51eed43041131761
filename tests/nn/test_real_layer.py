"""Real layers in native kernels (float32, CPU) against their torch modules in float64."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from ebnet.models.layer_layout import ConvLayout
from ebnet.models.shortcut import Projection
from ebnet.models.stem import CifarStem, Conv7x7Stem, ImageNetStem
from ebnet.nn.real_layer import MaxPoolLayer, RealGraph, RealLayer, Step


@contextmanager
def threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def conv(cin: int, cout: int, kernel: int = 1, stride: int = 1) -> ConvLayout:
    return ConvLayout("conv", cin, cout, kernel, stride, 1, ())


def random_norms(module: nn.Module) -> nn.Module:
    for norm in module.modules():
        if isinstance(norm, nn.BatchNorm2d):
            nn.init.normal_(norm.weight)
            nn.init.normal_(norm.bias)
            norm.running_mean.normal_()  # type: ignore[union-attr]
            norm.running_var.uniform_(0.5, 2)  # type: ignore[union-attr]
    return module


def terms(layer: "Layer", x: Tensor, dy: Tensor) -> dict[str, Tensor]:
    """What the sums behind two gradients add up in absolute value: batch norm may leave little more than rounding."""
    layer, x = copy.deepcopy(layer).double(), x.detach().double()
    z = layer.conv(layer.pool(x))
    spread = z.var((0, 2, 3), unbiased=False) if layer.training else layer.norm.running_var
    size = dy.abs().max() * layer.norm.weight.abs() / (spread + layer.norm.eps).sqrt()  # type: ignore[operator]
    with torch.enable_grad():
        own, weight = x.abs().requires_grad_(), layer.conv.weight.detach().abs().requires_grad_()
        sums = nn.functional.conv2d(layer.pool(own), weight, stride=layer.conv.stride, padding=layer.conv.padding)
        dx, dweight = torch.autograd.grad(sums, [own, weight], size.detach().view(1, -1, 1, 1).expand_as(sums))
    return {"x": dx, "conv.weight": dweight}


def assert_equals_torch(native: nn.Module, x: Tensor, graph: RealGraph) -> None:
    """Outputs, every gradient and the running statistics, with the modules' own float64 path as the reference."""
    reference = copy.deepcopy(native).double()
    assert graph.serves(x), "the case is not what the kernels compute"
    x = x.clone().requires_grad_()
    exact = x.detach().double().requires_grad_()
    y, expected = native(x), reference(exact)
    dy = torch.randn_like(y)
    scales = terms(native, x, dy) if isinstance(native, Layer) else {}
    own = torch.autograd.grad(y, [x, *native.parameters()], dy)
    theirs = torch.autograd.grad(expected, [exact, *reference.parameters()], dy.double())
    largest = max(gradient.abs().max() for gradient in theirs)  # before a batch norm some gradients are rounding alone
    names = ["x", *(name for name, _ in native.named_parameters())]
    for name, mine, right in zip(["y", *names], [y, *own], [expected, *theirs], strict=True):
        # A value at an activation's corner may fall on either side of it: only so many numbers may be off.
        limit = 1e-4 * (right.abs() + right.abs().max()) + 1e-5 * scales.get(name, largest)
        off = (mine - right).abs() > limit
        assert off.sum() <= 1e-4 * off.numel(), name
    for (name, mine), right in zip(native.named_buffers(), reference.buffers(), strict=True):
        assert torch.allclose(mine.double(), right.double(), rtol=1e-5, atol=1e-5), name


class Layer(nn.Module):
    def __init__(self, pool: int, conv: nn.Conv2d, activation: nn.Module | None) -> None:
        super().__init__()
        self.pool = nn.AvgPool2d(pool, pool, ceil_mode=True, count_include_pad=False)
        self.conv, self.norm = conv, nn.BatchNorm2d(conv.out_channels)
        self.activation = activation or nn.Identity()
        self.graph = RealGraph([Step(RealLayer(self.conv, self.norm, activation, pool), 0, 1)])

    def forward(self, x: Tensor) -> Tensor:
        if self.graph.serves(x):
            return self.graph(x)
        return self.activation(self.norm(self.conv(self.pool(x))))


cases = st.fixed_dictionaries(
    {
        "cin": st.sampled_from([1, 3, 8, 17, 40]),
        "cout": st.sampled_from([1, 4, 7, 16, 30]),
        "kernel": st.integers(1, 5),
        "stride": st.integers(1, 3),
        "padding": st.integers(0, 2),
        "pool": st.sampled_from([1, 2, 3]),
        "size": st.tuples(st.integers(1, 33), st.integers(1, 33)),
        "batch": st.integers(2, 9),
        "activation": st.sampled_from([None, nn.ReLU, nn.PReLU]),
        "training": st.booleans(),
        "seed": st.integers(0, 2**31),
    }
)


@settings(max_examples=100, deadline=None)
@given(cases)
def test_equals_the_modules_in_float64(case: dict) -> None:
    torch.manual_seed(case["seed"])
    kernel, stride, padding = (1, 1, 0) if case["pool"] > 1 else (case["kernel"], case["stride"], case["padding"])
    real = nn.Conv2d(case["cin"], case["cout"], kernel, stride, padding, bias=False)
    kind = case["activation"]
    activation = kind(case["cout"]) if kind is nn.PReLU else kind and kind()
    layer = random_norms(Layer(case["pool"], real, activation)).train(case["training"])
    size = [max(side, kernel - 2 * padding) for side in case["size"]]  # the smallest maps leave one position
    with threads(1):
        assert_equals_torch(layer, torch.randn(case["batch"], case["cin"], *size), layer.graph)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(("size", "batch"), [(32, 5), (61, 2), (224, 2), (64, 1)])
def test_stems(training: bool, size: int, batch: int) -> None:
    torch.manual_seed(size)
    convs = {
        "conv1": conv(3, 8, 3, 2),
        "squeeze": conv(8, 4),
        "conv2": conv(4, 8, 3, 2),
        "mix": conv(16, 12),
    }
    for stem in (
        ImageNetStem(convs),
        Conv7x7Stem({"conv": conv(3, 12, 7, 2)}),
        CifarStem({"conv": conv(3, 12, 3, 1)}),
    ):
        random_norms(stem).train(training)
        assert_equals_torch(stem, torch.randn(batch, 3, size, size), stem._graph)


@pytest.mark.parametrize("variant", ["none", "linear", "relu", "prelu"])
@pytest.mark.parametrize(("stride", "size"), [(1, 6), (2, 8), (2, 7), (2, 2)])
def test_shortcuts(variant: str, stride: int, size: int) -> None:
    torch.manual_seed(size)
    convs = (conv(16, 4), conv(4, 32)) if variant != "none" else (conv(16, 32),)
    shortcut = random_norms(Projection(convs, stride, variant))
    assert_equals_torch(shortcut, torch.randn(6, 16, size, size), shortcut._graph)


@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "size"),
    [(3, 2, 1, (14, 14)), (3, 2, 1, (15, 9)), (2, 2, 0, (7, 8)), (5, 3, 2, (11, 13)), (3, 1, 1, (1, 6))],
)
def test_max_pool(kernel: int, stride: int, padding: int, size: tuple[int, int]) -> None:
    torch.manual_seed(kernel)
    pool = nn.MaxPool2d(kernel, stride, padding)
    layer = MaxPoolLayer(pool)
    assert layer.known
    x = torch.randint(4, (3, 5, *size)).float()  # many values are equal: the first one counts
    x[0, 0, 0, 0] = float("nan")
    x.requires_grad_()
    expected = pool(x)
    y, dy = torch.empty_like(expected), torch.randn_like(expected)
    place = layer.forward(x.detach(), y, 0, keep=True)
    assert place is not None
    assert torch.equal(y.nan_to_num(-1), expected.detach().nan_to_num(-1))
    dx = torch.empty_like(x)
    layer.backward(x, place, dy, 0, dx, accumulate=False)
    assert torch.allclose(dx, torch.autograd.grad(expected, x, dy)[0], atol=1e-6)


def test_a_window_of_nothing_but_minus_infinity_has_a_place_within_the_map() -> None:
    layer = MaxPoolLayer(nn.MaxPool2d(3, 2, 1))
    x, y = torch.full((1, 1, 5, 5), -float("inf")), torch.empty(1, 1, 3, 3)
    place = layer.forward(x, y, 0, keep=True)
    assert place is not None
    assert (y == -float("inf")).all()
    dx = torch.empty_like(x)
    layer.backward(x, place, torch.ones_like(y), 0, dx, accumulate=False)
    assert dx.sum() == 9


def test_a_mean_far_from_zero_costs_no_precision() -> None:
    """The variance is not the difference of two large numbers."""
    torch.manual_seed(0)
    layer = Layer(1, nn.Conv2d(1, 4, 1, bias=False), None)
    x = 1000 + torch.randn(16, 1, 9, 9)
    y, exact = layer(x), copy.deepcopy(layer).double()(x.double())
    assert (y - exact).abs().max() < 2e-3  # z itself is rounded to one part in 1.6e7 of 1000


def test_threads_give_the_same_result_every_time() -> None:
    torch.manual_seed(0)
    stem, x = CifarStem({"conv": conv(3, 12, 3, 1)}), torch.randn(9, 3, 30, 30)

    def step() -> list[Tensor]:
        y = stem(x)
        return [y.detach(), *torch.autograd.grad(y.square().sum(), list(stem.parameters()))]

    with threads(2):
        first = step()
        for _ in range(5):
            assert all(map(torch.equal, step(), first))
    for mine, theirs in zip(step(), first, strict=True):
        assert torch.allclose(mine, theirs, rtol=1e-4, atol=1e-4)


def test_not_a_number_reaches_the_output_and_the_weights() -> None:
    shortcut = Projection((conv(4, 4), conv(4, 8)), 2, "relu")
    x = torch.randn(2, 4, 4, 4)
    x[1, 0, 0, 0] = float("nan")
    y = shortcut(x)
    assert shortcut._graph.serves(x)
    assert y.isnan().any()
    y.sum().backward()
    assert all(layer.weight.grad.isnan().any() for layer in (shortcut.conv1, shortcut.conv2))  # type: ignore[union-attr]


def test_what_the_kernels_do_not_compute_goes_through_the_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    shortcut = Projection((conv(4, 4), conv(4, 8)), 2, "prelu")
    x = torch.randn(2, 4, 4, 4)
    assert shortcut._graph.serves(x)
    assert not shortcut._graph.serves(x.double())
    assert not shortcut._graph.serves(x.to(memory_format=torch.channels_last))
    assert not shortcut._graph.serves(x[:1, :, :2, :2]), "one value to normalise is torch's error"
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        shortcut(x[:1, :, :2, :2])
    with pytest.raises(RuntimeError, match="channels"):
        shortcut(x[:, :3].contiguous())
    seen: list[nn.Module] = []
    hook = shortcut.conv1.register_forward_hook(lambda module, *_: seen.append(module))
    shortcut(x)
    assert seen == [shortcut.conv1]
    hook.remove()
    monkeypatch.setenv("EBNET_TRAIN", "torch")
    assert not shortcut._graph.serves(x)


def test_without_gradients_nothing_is_kept() -> None:
    shortcut = Projection((conv(4, 4), conv(4, 8)), 2, "prelu").eval()
    x = torch.randn(3, 4, 6, 6)
    with torch.no_grad():
        y = shortcut(x)
    assert y.grad_fn is None
    assert all(kept is None or kept.z is None for kept in shortcut._graph.run(x, keep=False)[1])
    assert torch.equal(y, shortcut(x))


def test_frozen_parameters_get_no_gradient() -> None:
    shortcut = Projection((conv(4, 4), conv(4, 8)), 1, "prelu")
    shortcut.conv1.requires_grad_(False)
    shortcut(torch.randn(3, 4, 6, 6)).sum().backward()
    assert shortcut.conv1.weight.grad is None
    assert shortcut.conv2.weight.grad is not None
