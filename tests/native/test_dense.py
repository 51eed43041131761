"""The real-valued kernels: the scalar truth equals numpy, every level equals the scalar truth up to rounding."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebnet._native import kernels
from tests.native.binary_case import Shape, pack_planes
from tests.native.levels import SEEDS, each_level, few

FEW = few(40)
level = each_level(kernels.dense_levels())


def normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.normal(size=shape).astype(np.float32)


def activate(value: np.ndarray, activation: str, slope: np.ndarray) -> np.ndarray:
    negative = {"none": value, "relu": np.zeros_like(value), "prelu": slope * value}[activation]
    return np.where(value < 0, negative, value)


@st.composite
def conv_shapes(draw: st.DrawFn) -> Shape:
    kernel, stride = draw(st.sampled_from([1, 3, 7])), draw(st.integers(1, 3))
    pad, dilation = draw(st.integers(0, 3)), draw(st.sampled_from([1, 1, 2]))
    least = max(1, dilation * (kernel - 1) + 1 - 2 * pad)
    inputs, outputs = draw(st.sampled_from([1, 3, 4, 16, 33])), draw(st.sampled_from([1, 8, 16, 20, 32, 50]))
    height, width = least + draw(st.integers(0, 5)), least + draw(st.integers(0, 30))
    return Shape(inputs, outputs, 1, kernel, kernel, stride, stride, pad, pad, dilation, dilation, height, width)


@FEW
@given(shape=conv_shapes(), seed=SEEDS, activation=st.sampled_from(["none", "relu", "prelu"]), data=st.data())
def test_conv(level: str, shape: Shape, seed: int, activation: str, data: st.DataObject) -> None:
    rng, s = np.random.default_rng(seed), shape
    before, after = data.draw(st.integers(0, 3)), data.draw(st.integers(0, 5))
    image = normal(rng, s.in_h, s.in_w, s.in_channels + before)
    weights = normal(rng, s.out_channels, s.in_channels, s.kernel_h, s.kernel_w)
    scale, shift, slope = (normal(rng, s.out_channels) for _ in range(3))
    output = np.full((s.out_h, s.out_w, s.out_channels + after), 9, np.float32)
    split = data.draw(st.integers(0, s.out_h))
    kernels.dense_conv(level, s.numbers(), weights, scale, shift, activation, slope, image, output, split)

    padded = np.pad(image[..., : s.in_channels].astype(np.float64), ((s.pad_h,) * 2, (s.pad_w,) * 2, (0, 0)))
    expected = np.zeros((s.out_h, s.out_w, s.out_channels))
    for ky in range(s.kernel_h):
        for kx in range(s.kernel_w):
            tap = padded[ky * s.dilation_h :, kx * s.dilation_w :][:: s.stride_h, :: s.stride_w][: s.out_h, : s.out_w]
            expected += tap @ weights[:, :, ky, kx].T.astype(np.float64)
    expected = activate(expected * scale + shift, activation, slope)
    np.testing.assert_allclose(output[..., : s.out_channels], expected, rtol=1e-4, atol=1e-3)
    assert (output[..., s.out_channels :] == 9).all(), "wrote past its channels"


@pytest.mark.parametrize("kind", ["max", "average"])
@FEW
@given(
    kernel=st.integers(1, 3),
    stride=st.integers(1, 3),
    pad=st.integers(0, 1),
    ceil_mode=st.booleans(),
    size=st.tuples(st.integers(3, 12), st.integers(3, 12), st.sampled_from([1, 7, 8, 19, 32])),
    seed=SEEDS,
)
def test_pool(
    level: str, kind: str, kernel: int, stride: int, pad: int, ceil_mode: bool, size: tuple[int, int, int], seed: int
) -> None:
    pad = min(pad, kernel // 2)
    image = normal(np.random.default_rng(seed), *size)
    extents = []
    for extent in size[:2]:  # torch's rule: round up, but no window may start in the padding on the right
        out = (extent + 2 * pad - kernel + (stride - 1 if ceil_mode else 0)) // stride + 1
        extents.append(out - 1 if ceil_mode and (out - 1) * stride >= extent + pad else out)
    output = np.empty((*extents, size[2]), np.float32)
    kernels.pool(level, kind, kernel, stride, pad, ceil_mode, image, output)
    for y in range(extents[0]):
        for x in range(extents[1]):
            top, left = y * stride - pad, x * stride - pad
            window = image[max(top, 0) : top + kernel, max(left, 0) : left + kernel].reshape(-1, size[2])
            expected = window.max(axis=0) if kind == "max" else window.mean(axis=0, dtype=np.float64)
            np.testing.assert_allclose(output[y, x], expected, rtol=1e-5, atol=1e-6)


@FEW
@given(pixels=st.integers(1, 60), channels=st.sampled_from([1, 5, 8, 16, 40]), seed=SEEDS)
def test_global_average_pool(level: str, pixels: int, channels: int, seed: int) -> None:
    image = normal(np.random.default_rng(seed), pixels, channels)
    output = np.empty(channels, np.float32)
    kernels.global_average_pool(level, image, output)
    np.testing.assert_allclose(output, image.mean(axis=0, dtype=np.float64), rtol=1e-5, atol=1e-6)


@FEW
@given(
    inputs=st.integers(1, 70),
    outputs=st.integers(1, 30),
    activation=st.sampled_from(["none", "relu", "prelu"]),
    seed=SEEDS,
)
def test_linear(level: str, inputs: int, outputs: int, activation: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights, bias, slope = normal(rng, outputs, inputs), normal(rng, outputs), normal(rng, outputs)
    vector = normal(rng, inputs)
    output = np.empty(outputs, np.float32)
    kernels.linear(level, weights, bias, activation, slope, vector, output)
    expected = activate(weights.astype(np.float64) @ vector + bias, activation, slope)
    np.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-4)


@FEW
@given(
    pixels=st.integers(1, 5),
    groups=st.sampled_from([1, 2, 3]),
    per_group=st.sampled_from([1, 4, 8, 11, 16, 44, 64, 70]),
    seed=SEEDS,
)
def test_binarize(pixels: int, groups: int, per_group: int, seed: int) -> None:
    rng, channels = np.random.default_rng(seed), groups * per_group
    stream, scale, shift = normal(rng, pixels, channels), normal(rng, channels), normal(rng, channels)
    zero = rng.random(channels) < 0.3
    scale[zero], shift[zero] = 0.0, -0.0
    bits = np.full((pixels, groups, (per_group + 63) // 64), 2**64 - 1, np.uint64)
    sums = np.ones(channels, np.float32)
    kernels.binarize(stream, per_group, scale, shift, bits, sums)
    np.testing.assert_array_equal(bits, pack_planes(scale * stream + shift >= 0, groups))
    np.testing.assert_allclose(sums, 1 + stream.sum(axis=0, dtype=np.float64), rtol=1e-5, atol=1e-5)
