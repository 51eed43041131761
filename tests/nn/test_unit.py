"""The binary unit as one native operation (float32, CPU) against its layers in float64."""

import copy
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from ebnet._native import kernels
from ebnet.errors import ConfigError, NonFiniteError
from ebnet.nn import ExpertBinaryConv2d, Precision, Ste, native
from ebnet.nn.binary_conv import BinaryConv2d
from ebnet.nn.unit import binary_unit, refusal

FAR = 1e-5
"""From the places where a sign, an estimator or a PReLU jumps: nearer ones are rounded to either side."""

Numbers = dict[str, Tensor]


@dataclass
class Unit:
    """The layers of a unit, and an input."""

    norm: nn.BatchNorm2d | None
    conv: ExpertBinaryConv2d
    act: nn.PReLU | None
    x: Tensor
    skip: str = "x"

    def layers(self, dtype: torch.dtype) -> tuple[Any, ...]:
        return tuple(None if m is None else copy.deepcopy(m).to(dtype) for m in (self.norm, self.conv, self.act))

    def skip_of(self, x: Tensor, y: Tensor) -> Tensor | None:
        if self.skip == "other":
            return torch.linspace(-1, 1, y.numel(), dtype=x.dtype).view_as(y).requires_grad_()
        return x if self.skip == "x" else None

    def native(self) -> Numbers:
        norm, conv, act = self.layers(torch.float32)
        x = self.x.clone().requires_grad_()
        assert refusal(x, norm, conv, act) is None
        size = conv.geometry.output_size(x.shape[2:], conv.kernel_size)
        skip = self.skip_of(x, x.new_empty(len(x), conv.out_channels, *size))
        return numbers(binary_unit(x, skip, norm, conv, act), x, skip, norm, conv, act)

    def specified(self) -> Numbers | None:
        """Layer by layer in double precision; None where something lies too near to a jump to be told from it."""
        norm, conv, act = self.layers(torch.float64)
        x = self.x.double().requires_grad_()
        n = x if norm is None else norm(x)
        z = BinaryConv2d.forward(conv, n)
        far = [z.abs()[z != 0] > FAR] if act is not None else []
        if self.conv.precision.binary_input:
            far += [n.abs() > FAR, (n.abs() - 1).abs() > FAR]
        if conv.gate is not None:
            first, second = conv.gate.linear(n.mean((2, 3))).topk(2).values.T
            far.append(first - second > FAR)
        if not all(values.all() for values in far):
            return None
        y = z if act is None else act(z)
        skip = self.skip_of(x, y)
        return numbers(y if skip is None else y + skip, x, skip, norm, conv, act)


def numbers(y: Tensor, x: Tensor, skip: Tensor | None, *layers: Any) -> Numbers:
    """Output, every gradient, and the state left behind."""
    weight = torch.sin(torch.arange(y.numel(), dtype=y.dtype)).view_as(y)
    (y * weight).sum().backward()
    found = {"y": y.detach(), "dx": x.grad, "dskip": None if skip is None else skip.grad}
    for layer in filter(None, layers):
        found |= {f"d{type(layer).__name__}.{name}": p.grad for name, p in layer.named_parameters()}
        found |= {f"{type(layer).__name__}.{name}": buffer for name, buffer in layer.named_buffers()}
        found |= {"experts": layer.last_experts} if isinstance(layer, ExpertBinaryConv2d) else {}
    return {name: value for name, value in found.items() if value is not None}


def assert_equal(mine: Numbers, theirs: Numbers | None) -> None:
    assert theirs is not None
    assert mine.keys() == theirs.keys()
    assert torch.equal(mine["experts"], theirs["experts"])
    for name, expected in theirs.items():
        expected = expected.double()
        error = (mine[name].double() - expected).abs().max() if expected.numel() else 0.0
        assert error <= 3e-4 * expected.abs().max() + 1e-5, name


def made(
    channels: tuple[int, int] = (8, 8),
    kernel: tuple[int, int] = (3, 3),
    size: tuple[int, int] = (6, 6),
    batch: int = 5,
    experts: int = 4,
    normed: bool = True,
    activated: bool = True,
    training: bool = True,
    skip: str = "x",
    seed: int = 0,
    **options: Any,
) -> Unit:
    torch.manual_seed(seed)
    conv = ExpertBinaryConv2d(*channels, kernel, num_experts=experts, **options)
    norm, act = nn.BatchNorm2d(channels[0], eps=1e-4), nn.PReLU(channels[1])
    with torch.no_grad():
        conv.weight.normal_(std=0.8)
        conv.scale.uniform_(-1.5, 1.5)
        if conv.gate is not None:
            conv.gate.linear.weight.normal_()
            conv.gate.linear.bias.normal_(std=0.3)
        if conv.bias is not None:
            conv.bias.normal_()
        act.weight.uniform_(-0.3, 0.7)
        for values in (norm.weight, norm.bias, norm.running_mean):
            assert values is not None
            values.normal_()
        assert norm.running_var is not None
        norm.running_var.uniform_(0.5, 2)
    x = torch.randn(batch, channels[0], *size) + 0.3
    norm.train(training)
    return Unit(norm if normed else None, conv, act if activated else None, x, skip)


pairs = st.tuples
cases = st.fixed_dictionaries(
    {
        "groups": st.sampled_from([1, 2, 3]),
        "channels": pairs(st.sampled_from([1, 2, 5, 8, 16, 19]), st.sampled_from([1, 3, 8, 13, 17, 35])),
        "kernel": pairs(st.integers(1, 4), st.integers(1, 4)),
        "stride": pairs(st.integers(1, 3), st.integers(1, 3)),
        "padding": pairs(st.integers(0, 3), st.integers(0, 3)),
        "dilation": pairs(st.integers(1, 2), st.integers(1, 2)),
        "beyond": pairs(st.integers(0, 5), st.integers(0, 9)),
        "batch": st.integers(1, 7),
        "experts": st.integers(1, 8),
        "gate": st.sampled_from(["softmax", "sigmoid"]),
        "temperature": st.sampled_from([1.0, 0.5]),
        "scaling": st.booleans(),
        "bias": st.booleans(),
        "precision": st.sampled_from(list(Precision)),
        "ste": st.sampled_from(list(Ste)),
        "normed": st.booleans(),
        "activated": st.booleans(),
        "training": st.booleans(),
        "skip": st.sampled_from(["x", "other", "none"]),
        "seed": st.integers(0, 2**20),
    }
)
THE_PAPERS = {
    "groups": 1, "channels": (8, 8), "kernel": (3, 3), "stride": (1, 1), "padding": (1, 1), "dilation": (1, 1),
    "beyond": (4, 4), "batch": 6, "experts": 4, "gate": "softmax", "temperature": 1.0, "scaling": True, "bias": False,
    "ste": Ste.CLIP, "normed": True, "activated": True, "training": True, "skip": "x", "seed": 1,
}  # fmt: skip


@pytest.fixture
def level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "avx2" and not dict(kernels.dense_levels())["avx2"]:
        pytest.skip("this CPU has no AVX2")
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


def on_threads(threads: int, precision: Precision = Precision.BINARY) -> Numbers:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        return made((32, 32), size=(9, 9), batch=21, groups=2, padding=1, scaling=True, precision=precision).native()
    finally:
        torch.set_num_threads(before)


def test_threads_give_the_same_result_every_time() -> None:
    first, alone = on_threads(2), on_threads(1)
    for _ in range(5):
        again = on_threads(2)
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
