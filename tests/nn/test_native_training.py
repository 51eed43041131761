"""The native training kernels (float32, CPU) against a weight tensor per sample in float64."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ebnet.errors import ConfigError
from ebnet.nn import Ste, native, sign
from ebnet.nn.expert_function import expert_convolution
from ebnet.nn.geometry import Geometry

Gradients = tuple[Tensor, ...]
KERNELS = ["forward", "input_gradient", "sample_gradients"]


@contextmanager
def native_calls() -> Iterator[list[str]]:
    """The names of the kernels called meanwhile."""
    called: list[str] = []
    assert native.kernels is not None, "the tests need the built core"

    def spy(name: str):  # type: ignore[no-untyped-def]
        kernel = getattr(native.kernels, name)
        return lambda *arguments: called.append(name) or kernel(*arguments)

    with patch.multiple(native.kernels, **{name: spy(name) for name in KERNELS}):
        yield called


def per_sample(x: Tensor, theta: Tensor, gate: Tensor, geometry: Geometry, ste: Ste | None) -> Tensor:
    """The definition: every sample has its own weights, and autograd does the rest."""
    weight = gate @ theta.flatten(1)
    weight = weight if ste is None else sign(weight, ste)
    weights = weight.view(len(x), *theta.shape[1:])
    return torch.cat([geometry.conv(x[b : b + 1], weights[b]) for b in range(len(x))])


def with_gradients(function, inputs: list[Tensor], dy: Tensor, *options) -> Gradients:  # type: ignore[no-untyped-def]
    inputs = [t.detach().requires_grad_() for t in inputs]
    y = function(*inputs, *options)
    return (y.detach(), *torch.autograd.grad(y, inputs, dy))


def assert_native_equals_per_sample(
    x: Tensor, theta: Tensor, chosen: Tensor, geometry: Geometry, ste: Ste | None
) -> None:
    gate = F.one_hot(chosen, len(theta)).float()
    inputs = [x, theta, gate]
    dy = torch.randn_like(geometry.conv(x, theta[0]))
    with native_calls() as called:
        ours = with_gradients(expert_convolution, inputs, dy, geometry, ste)
    assert called == KERNELS
    doubles = [t.double() for t in inputs]
    expected = with_gradients(per_sample, doubles, dy.double(), geometry, ste)
    # What the absolute values of all terms add up to: rounding errors are a small part of that.
    terms = with_gradients(per_sample, [t.abs() for t in doubles], dy.double().abs(), geometry, ste)
    for name, mine, theirs, scale in zip(("y", "x", "theta", "gate"), ours, expected, terms, strict=True):
        assert mine.dtype == torch.float32
        assert ((mine - theirs).abs() <= 1e-5 * scale).all(), name


cases = st.fixed_dictionaries(
    {
        "groups": st.sampled_from([1, 2, 3]),
        "cin": st.sampled_from([1, 2, 5, 8, 16, 19, 33]),
        "cout": st.sampled_from([1, 3, 8, 13, 32]),
        "kernel": st.tuples(st.integers(1, 4), st.integers(1, 4)),
        "stride": st.tuples(st.integers(1, 3), st.integers(1, 3)),
        "padding": st.tuples(st.integers(0, 3), st.integers(0, 3)),
        "dilation": st.tuples(st.integers(1, 2), st.integers(1, 2)),
        "beyond": st.tuples(st.integers(0, 8), st.integers(0, 17)),
        "batch": st.integers(1, 6),
        "experts": st.integers(1, 9),
        "used": st.integers(1, 9),
        "ste": st.sampled_from([None, *Ste]),
        "seed": st.integers(0, 2**31),
    }
)


@settings(max_examples=100, deadline=None)
@given(cases)
def test_equals_a_weight_tensor_per_sample(case: dict) -> None:
    torch.manual_seed(case["seed"])
    groups, kernel = case["groups"], case["kernel"]
    geometry = Geometry(case["stride"], case["padding"], case["dilation"], groups)
    # The smallest input the kernel fits into, and some more: maps of one position are common.
    size = [
        max(1, d * (k - 1) + 1 - 2 * p) + more
        for k, p, d, more in zip(kernel, case["padding"], case["dilation"], case["beyond"], strict=True)
    ]
    x = torch.randn(case["batch"], groups * case["cin"], *size)
    theta = 0.8 * torch.randn(case["experts"], groups * case["cout"], case["cin"], *kernel)
    chosen = torch.randint(min(case["used"], case["experts"]), (case["batch"],))
    assert_native_equals_per_sample(x, theta, chosen, geometry, case["ste"])


@pytest.mark.parametrize(
    ("channels", "groups", "size", "kernel", "stride"),
    [(96, 1, 7, 3, 1), (64, 4, 30, 3, 1), (16, 1, 33, 3, 2), (160, 1, 9, 1, 1), (20, 1, 40, 5, 1)],
)
def test_layers_that_need_several_blocks(channels: int, groups: int, size: int, kernel: int, stride: int) -> None:
    torch.manual_seed(size)
    geometry = Geometry((stride, stride), (kernel // 2, kernel // 2), (1, 1), groups)
    theta = 0.6 * torch.randn(4, channels, channels // groups, kernel, kernel)
    x = torch.randn(6, channels, size, size).sign()
    assert_native_equals_per_sample(x, theta, torch.tensor([3, 0, 0, 1, 3, 0]), geometry, Ste.CLIP)


def gradients_of_a_step(threads: int) -> Gradients:
    torch.manual_seed(0)
    geometry = Geometry((1, 1), (1, 1), (1, 1), 2)
    x, theta = torch.randn(20, 32, 9, 9), torch.randn(4, 32, 16, 3, 3)
    gate = F.one_hot(torch.randint(4, (20,)), 4).float()
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        return with_gradients(expert_convolution, [x, theta, gate], torch.randn(20, 32, 9, 9), geometry, Ste.POLYNOMIAL)
    finally:
        torch.set_num_threads(before)


def test_threads_give_the_same_result_every_time() -> None:
    first = gradients_of_a_step(2)
    for _ in range(5):
        for mine, theirs in zip(gradients_of_a_step(2), first, strict=True):
            assert torch.equal(mine, theirs)
    for mine, theirs in zip(gradients_of_a_step(1), first, strict=True):
        assert torch.allclose(mine, theirs, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_types_take_the_torch_path(dtype: torch.dtype) -> None:
    geometry = Geometry((1, 1), (1, 1), (1, 1), 1)
    inputs = [torch.randn(3, 4, 5, 5), torch.randn(2, 4, 4, 3, 3), F.one_hot(torch.tensor([0, 1, 1]), 2)]
    with native_calls() as called:
        with_gradients(
            expert_convolution, [t.to(dtype) for t in inputs], torch.ones(3, 4, 5, 5, dtype=dtype), geometry, Ste.CLIP
        )
    assert called == []


def test_without_the_core_torch_computes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    native_result = gradients_of_a_step(1)
    monkeypatch.setattr(native, "kernels", None)
    for mine, theirs in zip(gradients_of_a_step(1), native_result, strict=True):
        assert torch.allclose(mine, theirs, rtol=1e-4, atol=1e-3)


def test_the_environment_can_ask_for_torch_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    native_result = gradients_of_a_step(1)
    monkeypatch.setenv("EBNET_TRAIN", "torch")
    with native_calls() as called:
        torch_result = gradients_of_a_step(1)
    assert called == []
    for mine, theirs in zip(torch_result, native_result, strict=True):
        assert torch.allclose(mine, theirs, rtol=1e-4, atol=1e-3)
    monkeypatch.setenv("EBNET_TRAIN", "fast")
    with pytest.raises(ConfigError, match="EBNET_TRAIN='fast': expected native or torch"):
        gradients_of_a_step(1)


def test_wide_groups_convolve_through_torch() -> None:
    geometry = Geometry((1, 1), (0, 0), (1, 1), 2)
    theta = torch.randn(2, 1100, 400, 1, 1)
    x, gate = torch.randn(2, 800, 9, 9), F.one_hot(torch.tensor([1, 0]), 2).float()
    with native_calls() as called:
        with_gradients(expert_convolution, [x, theta, gate], torch.randn(2, 1100, 9, 9), geometry, None)
    assert called == ["sample_gradients"], "on a large map"
    small = x[:, :, :8, :8].contiguous()
    with native_calls() as called:
        with_gradients(expert_convolution, [small, theta, gate], torch.randn(2, 1100, 8, 8), geometry, None)
    assert called == KERNELS


def test_the_binding_refuses_what_does_not_fit() -> None:
    assert native.kernels is not None
    x, theta, dy = torch.zeros(2, 4, 5, 5), torch.zeros(3, 4, 4, 3, 3), torch.zeros(2, 4, 5, 5)
    dtheta, dgate, chosen = torch.zeros_like(theta), torch.zeros(2, 3), torch.tensor([0, 2])
    good = (x, dy, theta, chosen, (1, 1, 1, 1, 1, 1, 1), "clip", dtheta, dgate, 1)
    native.kernels.sample_gradients(*good)
    for place, bad, message in [
        (1, torch.zeros(2, 4, 5, 4), "shape of the output"),
        (3, torch.tensor([0, 3]), "chosen names no expert"),
        (4, (1, 1, 1, 1, 1, 1, 2), "do not fit together"),
        (5, "soft", "no estimator is called soft"),
        (7, torch.zeros(2, 2), "wrong size"),
        (8, 0, "one thread"),
    ]:
        with pytest.raises(ValueError, match=message):
            native.kernels.sample_gradients(*good[:place], bad, *good[place + 1 :])
