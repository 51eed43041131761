"""The binary unit as one native operation (float32, CPU) against its layers in float64."""

import copy
from typing import Any

import pytest
import torch
from hypothesis import assume, example, given, settings
from torch import Tensor, nn
from torch.nn import functional as F

from ebnet._native import kernels
from ebnet.errors import ConfigError, NonFiniteError
from ebnet.nn import Precision, native
from ebnet.nn.unit import binary_unit, refusal
from tests.nn.units import THE_PAPERS, Numbers, Unit, assert_equal, cases, made


@pytest.fixture
def level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if not dict(kernels.dense_levels()).get(request.param, request.param == "portable"):
        pytest.skip(f"this CPU has no {request.param}")
    monkeypatch.delenv("EBNET_ISA", raising=False)
    if kernels.requested_levels()[0] != request.param:
        monkeypatch.setenv("EBNET_ISA", request.param)
    return request.param


def check(case: dict[str, Any]) -> None:
    case = dict(case)
    groups, channels, beyond = case.pop("groups"), case.pop("channels"), case.pop("beyond")
    # The smallest input that the kernel fits into, and some more: maps of one position are common.
    size = tuple(
        max(1, d * (k - 1) + 1 - 2 * p) + more
        for k, p, d, more in zip(case["kernel"], case["padding"], case["dilation"], beyond, strict=True)
    )
    channels = (groups * channels[0], groups * channels[1])
    unit = made(channels, size=size, groups=groups, **case)
    assume(not (unit.norm is not None and case["training"] and unit.x.numel() < 4 * unit.x.shape[1]))
    out = unit.conv.geometry.output_size(size, unit.conv.kernel_size)
    if unit.skip == "x" and (channels[0] != channels[1] or tuple(out) != size):
        unit.skip = "other"
    expected = unit.specified()
    assume(expected is not None)
    assert_equal(unit.native(), expected)


@settings(max_examples=120, deadline=None)
@given(cases)
@example(THE_PAPERS | {"precision": Precision.BINARY_INPUT})
@example(THE_PAPERS | {"precision": Precision.BINARY})
@example(THE_PAPERS | {"precision": Precision.BINARY_INPUT, "groups": 3, "channels": (4, 4)})
@example(THE_PAPERS | {"precision": Precision.BINARY, "groups": 3, "channels": (4, 4)})
def test_equals_its_layers_in_double_precision(case: dict[str, Any]) -> None:
    check(case)


@pytest.mark.parametrize("level", ["avx2", "portable"], indirect=True)
def test_on_every_level(level: str) -> None:
    @settings(max_examples=40, deadline=None)
    @given(cases)
    def equal(case: dict[str, Any]) -> None:
        check(case)

    equal()


@pytest.mark.parametrize("precision", list(Precision))
@pytest.mark.parametrize(
    ("channels", "groups", "size", "kernel", "stride"),
    [(96, 1, 7, 3, 1), (64, 4, 30, 3, 1), (16, 1, 33, 3, 2), (160, 1, 9, 1, 1), (20, 1, 40, 5, 1), (48, 1, 1, 3, 1)],
)
def test_layers_that_need_several_pieces(
    channels: int, groups: int, size: int, kernel: int, stride: int, precision: Precision
) -> None:
    options = {"stride": stride, "padding": kernel // 2, "groups": groups, "precision": precision, "scaling": True}
    for seed in range(100):
        unit = made((channels, channels), (kernel, kernel), (size, size), batch=6, skip="other", seed=seed, **options)
        # Large maps have values near every jump; move those away.
        with torch.no_grad():
            assert unit.norm is not None
            n = copy.deepcopy(unit.norm)(unit.x)
            near = (n.abs() < 1e-3) | ((n.abs() - 1).abs() < 1e-3)
            unit.x[near] += 0.05
        if (expected := unit.specified()) is not None:
            return assert_equal(unit.native(), expected)
    pytest.fail("no input without values near a jump")


@pytest.mark.parametrize("level", ["avx512", "avx2", "portable"], indirect=True)
@pytest.mark.parametrize(
    ("channels", "groups", "size", "kernel"), [(3, 1, 5, 3), (66, 2, 9, 3), (64, 1, 2, 3), (40, 1, 40, 5)]
)
def test_sums_of_signs_are_exact(level: str, channels: int, groups: int, size: int, kernel: int) -> None:
    options = {"padding": kernel // 2, "groups": groups, "precision": "binary", "activated": False}
    unit = made(
        (channels, channels), (kernel, kernel), (size, size), batch=3, experts=1, skip="none", normed=False, **options
    )
    with torch.no_grad():
        unit.conv.scale.fill_(1.0)
    signs = [torch.where(t >= 0, 1.0, -1.0).double() for t in (unit.x, unit.conv.weight.detach())]
    expected = F.conv2d(*signs, padding=kernel // 2, groups=groups)
    assert torch.equal(unit.native()["y"].double(), expected)


def test_bands_that_lie_in_the_padding() -> None:
    """A map so wide that its rows are worked on in bands, of which the first and the last see nothing."""
    unit = made((4, 4), (3, 3), (2, 300), batch=2, skip="other", padding=(9, 1), precision="real", activated=False)
    assert_equal(unit.native(), unit.specified())


def test_an_expert_without_samples_has_no_gradient() -> None:
    unit = made(batch=6, experts=3, padding=1)
    assert unit.conv.gate is not None
    with torch.no_grad():
        unit.conv.gate.linear.bias.copy_(torch.tensor([50.0, -50.0, 0.0]))
    found = unit.native()
    assert found["experts"].tolist() == [0] * 6
    gradient = found["dExpertBinaryConv2d.weight"].unflatten(0, (3, -1))
    assert gradient[0].abs().max() > 0
    assert gradient[1:].abs().max() == 0


def test_the_statistics_of_a_map_far_from_zero() -> None:
    unit = made(size=(9, 9), batch=8, experts=1, padding=1)
    assert unit.norm is not None
    unit.x = unit.x * 0.1 + 1000
    found, (layer, *_) = unit.native(), unit.layers(torch.float64)
    layer(unit.x.double())
    for name, expected in layer.named_buffers():
        assert torch.allclose(found[f"BatchNorm2d.{name}"].double(), expected.double(), rtol=1e-5)


@pytest.mark.parametrize("momentum", [0.1, 0.7, None])
def test_running_statistics_move_as_those_of_the_layer(momentum: float | None) -> None:
    unit = made(size=(3, 4), padding=1, experts=1)
    assert unit.norm is not None
    unit.norm.momentum = momentum
    layer = copy.deepcopy(unit.norm)
    for step in range(3):
        x = unit.x * (step + 1)
        binary_unit(x, x, unit.norm, unit.conv, unit.act)
        layer(x)
    for mine, theirs in zip(unit.norm.buffers(), layer.buffers(), strict=True):
        assert torch.allclose(mine, theirs, rtol=1e-5, atol=1e-6)


def on_threads(threads: int, precision: Precision = Precision.BINARY, side: int = 9) -> Numbers:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        size = (side, side)
        return made((32, 32), size=size, batch=21, groups=2, padding=1, scaling=True, precision=precision).native()
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("threads", [2, 5])
@pytest.mark.parametrize("side", [2, 9, 12, 30])  # a piece is the whole batch, four samples, three, some rows of one
@pytest.mark.parametrize("precision", [Precision.BINARY_INPUT, Precision.BINARY])
def test_threads_give_the_same_result_every_time(threads: int, side: int, precision: Precision) -> None:
    first, alone = on_threads(threads, precision, side), on_threads(1, precision, side)
    for _ in range(5):
        again = on_threads(threads, precision, side)
        assert all(torch.equal(again[name], value) for name, value in first.items())
    for name, value in alone.items():
        if name == "dExpertBinaryConv2d.weight":  # the one sum that threads share
            assert torch.allclose(value, first[name], rtol=1e-5, atol=1e-5)
        else:
            assert torch.equal(value, first[name]), name


def test_more_threads_than_samples() -> None:
    assert_equal(on_threads(3), on_threads(40))


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("training", [True, False])
def test_what_is_not_finite_is_an_error(bad: float, training: bool) -> None:
    unit = made(training=training, padding=1)
    unit.x[3, 2, 1, 0] = bad
    with pytest.raises(NonFiniteError, match="holds NaN or infinity"):
        unit.native()


@pytest.mark.parametrize(
    ("precision", "bytes_each"), [(Precision.REAL, 4), (Precision.BINARY_INPUT, 4), (Precision.BINARY, 2)]
)
def test_keeps_the_input_and_the_convolution_and_little_else(precision: Precision, bytes_each: int) -> None:
    unit = made((16, 16), size=(24, 24), batch=8, padding=1, precision=precision)
    kept: list[Tensor] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        binary_unit(unit.x, unit.x, unit.norm, unit.conv, unit.act)
    own = {id(p) for layer in (unit.norm, unit.conv, unit.act) for p in layer.parameters()} | {id(unit.x)}  # type: ignore[union-attr]
    extra = sum(t.numel() * t.element_size() for t in kept if id(t) not in own and t.data_ptr() != unit.x.data_ptr())
    extra -= sum(p.numel() * 4 for layer in (unit.norm, unit.conv, unit.act) for p in layer.parameters())  # type: ignore[union-attr]
    assert extra <= unit.x.numel() * bytes_each + 16 * 1024


def test_without_gradients_nothing_is_kept() -> None:
    unit = made(padding=1)
    with torch.no_grad():
        y = binary_unit(unit.x, unit.x, unit.norm, unit.conv, unit.act)
    assert not y.requires_grad
    assert unit.conv.last_experts is not None


def test_the_convolution_alone_is_the_operation_without_the_rest() -> None:
    unit = made(normed=False, activated=False, skip="none", padding=1, scaling=True)
    assert_equal(unit.native(), unit.specified())
    assert torch.equal(unit.conv(unit.x), binary_unit(unit.x, None, None, unit.conv, None))


def reason(unit: Unit, x: Tensor | None = None) -> str | None:
    return refusal(unit.x if x is None else x, unit.norm, unit.conv, unit.act)


def test_why_layers_go_through_torch() -> None:
    unit = made(padding=1)
    assert reason(unit) is None
    assert reason(unit, unit.x.double()) == "float64 on cpu"
    assert reason(unit, unit.x.to("meta")) == "float32 on meta"
    assert reason(unit, unit.x.to(memory_format=torch.channels_last)) == "channels last"
    assert reason(unit, unit.x[:1, :, :1, :1].contiguous()) == "one value per channel"
    with torch.autocast("cpu", torch.bfloat16):
        assert reason(unit) == "autocast"
    for layer in (unit.norm, unit.conv, unit.act, unit.conv.gate):
        assert layer is not None
        hook = layer.register_forward_hook(lambda *_: None)
        assert reason(unit) == "hooks on its layers"
        hook.remove()
    assert reason(unit) is None
    unit.norm = nn.BatchNorm2d(8, affine=False)
    assert reason(unit) == "a batch norm without weights or running statistics"
    unit.norm = nn.SyncBatchNorm(8)  # type: ignore[assignment]
    assert reason(unit) == "SyncBatchNorm instead of BatchNorm2d"
    unit.norm, unit.act = None, nn.PReLU()
    assert reason(unit) == "PReLU instead of a PReLU per channel"


def test_the_environment_can_ask_for_torch_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    unit = made(padding=1)
    monkeypatch.setenv("EBNET_TRAIN", "torch")
    assert reason(unit) == "EBNET_TRAIN=torch"
    monkeypatch.setenv("EBNET_TRAIN", "fast")
    with pytest.raises(ConfigError, match="EBNET_TRAIN='fast': expected native or torch"):
        reason(unit)
    monkeypatch.setenv("EBNET_TRAIN", "native")
    monkeypatch.setattr(native, "kernels", None)
    assert reason(unit) == "no native core is installed"


def test_the_binding_refuses_what_is_no_unit() -> None:
    numbers = (2, 4, 5, 5, 4, 3, 3, 1, 1, 1, 1, 1, 1, 1, 2, 0)
    flags, reals, addresses = (True,) * 5, (0.0, 0.1, 1.0), (0,) * 12
    assert native.kernels is not None
    assert native.kernels.Unit(numbers, flags, 1, reals, addresses).out_size == [5, 5]
    for place, bad in [(0, 0), (13, 3), (14, 0), (2, -1), (15, -1)]:
        with pytest.raises(ValueError, match="no such unit"):
            native.kernels.Unit((*numbers[:place], bad, *numbers[place + 1 :]), flags, 1, reals, addresses)
    with pytest.raises(ValueError, match="no such estimator"):
        native.kernels.Unit(numbers, flags, 3, reals, addresses)
