"""The int8 kernels: the scalar truth equals int64 arithmetic, every level equals it in every bit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebnet._native import kernels
from tests.native.levels import SEEDS, each_level, few

FEW = few(60)
level = each_level(kernels.int8_levels())


@dataclass
class Case:
    """A convolution; `image` may have more channels than the weights read, as a slice of a concatenation has."""

    weights: np.ndarray
    zeros: np.ndarray
    image: np.ndarray
    multiplier: np.ndarray
    shift: np.ndarray
    slope: np.ndarray
    stride: int
    pad: int
    activation: str

    def sums(self) -> np.ndarray:
        """In int64, from the definition: a tap outside of the image adds nothing."""
        channels, k = self.weights.shape[1], self.weights.shape[2]
        centred = self.image[..., :channels].astype(np.int64) - self.zeros.astype(np.int64)
        padded = np.pad(centred, ((self.pad,) * 2, (self.pad,) * 2, (0, 0)))
        taps = np.lib.stride_tricks.sliding_window_view(padded, (k, k), (0, 1))[:: self.stride, :: self.stride]
        return np.einsum("yxcij,ocij->yxo", taps, self.weights.astype(np.int64))

    def reals(self) -> np.ndarray:
        """One rounding: the product is exact in float64, and so (but for ties within ties) is the sum."""
        sums = self.sums().astype(np.float32).astype(np.float64)
        real = (sums * self.multiplier.astype(np.float64) + self.shift.astype(np.float64)).astype(np.float32)
        negative = {"none": real, "relu": np.zeros_like(real), "prelu": self.slope * real}[self.activation]
        return np.where(real < 0, negative, real)

    def run(self, level: str, output: np.ndarray, step: float = 1.0, zero: int = 0, split: int = 0) -> None:
        kernels.int8_conv(
            level,
            self.weights,
            self.zeros,
            self.multiplier,
            self.shift,
            self.slope if self.activation == "prelu" else None,
            self.activation == "relu",
            self.stride,
            self.pad,
            self.image,
            output if output.dtype == np.float32 else None,
            output if output.dtype == np.uint8 else None,
            step,
            zero,
            split,
        )


@st.composite
def cases(draw: st.DrawFn) -> Case:
    rng = np.random.default_rng(draw(SEEDS))
    kernel, stride = draw(st.sampled_from([1, 2, 3, 7])), draw(st.integers(1, 3))
    pad = draw(st.integers(0, kernel - 1))
    least = max(1, kernel - 2 * pad)
    inputs = draw(st.sampled_from([1, 2, 3, 4, 5, 16, 33]))
    outputs = draw(st.sampled_from([1, 8, 16, 17, 32, 50, 80]))
    height, width = least + draw(st.integers(0, 5)), least + draw(st.integers(0, 30))
    extreme = draw(st.booleans())  # the numbers that come nearest to saturation
    weights = rng.choice([-64, 64], (outputs, inputs, kernel, kernel)) if extreme else None
    return Case(
        (rng.integers(-64, 65, (outputs, inputs, kernel, kernel)) if weights is None else weights).astype(np.int8),
        rng.integers(0, 256, inputs).astype(np.uint8),
        rng.choice([0, 255] if extreme else 256, (height, width, inputs + draw(st.integers(0, 3)))).astype(np.uint8),
        (rng.normal(size=outputs) / 1000).astype(np.float32),
        rng.normal(size=outputs).astype(np.float32),
        rng.normal(size=outputs).astype(np.float32),
        stride,
        pad,
        draw(st.sampled_from(["none", "relu", "prelu"])),
    )


def to_bytes(reals: np.ndarray, step: float, zero: int) -> np.ndarray:
    scaled = reals.astype(np.float64) * np.float64(np.float32(1) / np.float32(step)) + zero
    return np.rint(np.clip(scaled.astype(np.float32), 0, 255)).astype(np.uint8)


@FEW
@given(case=cases(), data=st.data())
def test_sums_are_exact(level: str, case: Case, data: st.DataObject) -> None:
    expected = case.sums()
    case.multiplier[:], case.shift[:], case.activation = 1.0, 0.0, "none"
    assert np.abs(expected).max() < 2**24  # so that floats hold them
    found = np.full((*expected.shape[:2], expected.shape[2] + 3), 9, np.float32)
    case.run(level, found, split=data.draw(st.integers(0, expected.shape[0])))
    np.testing.assert_array_equal(found[..., :-3], expected)
    assert (found[..., -3:] == 9).all()


@FEW
@given(case=cases())
def test_reals(level: str, case: Case) -> None:
    expected = case.reals()
    found = np.zeros(expected.shape, np.float32)
    case.run(level, found)
    np.testing.assert_array_max_ulp(found, expected, 1)


@FEW
@given(case=cases(), step=st.floats(1e-3, 0.2), zero=st.integers(0, 255), data=st.data())
def test_levels_agree_in_every_bit(case: Case, step: float, zero: int, data: st.DataObject) -> None:
    shape = case.sums().shape
    split = data.draw(st.integers(0, shape[0]))
    levels = [name for name, runs in kernels.int8_levels() if runs]
    for dtype in (np.float32, np.uint8):
        results = [np.zeros((*shape[:2], shape[2] + 1), dtype) for _ in levels]
        for name, result in zip(levels, results, strict=True):
            case.run(name, result, step, zero, split)
            assert result.tobytes() == results[0].tobytes(), name
    reals = np.zeros(shape, np.float32)
    case.run("scalar", reals)
    np.testing.assert_array_equal(results[0][..., :-1], to_bytes(reals, step, zero))


def test_the_largest_sum_fits(level: str) -> None:
    """131,072 inputs of 255 * 64: one more power of two and 32 bits would not do."""
    inputs = 2**15
    case = Case(
        np.full((1, inputs, 2, 2), 64, np.int8),
        np.zeros(inputs, np.uint8),
        np.full((2, 2, inputs), 255, np.uint8),
        np.ones(1, np.float32),
        np.zeros(1, np.float32),
        np.zeros(1, np.float32),
        1,
        0,
        "none",
    )
    for zero, weight in ((0, 64), (0, -64), (255, 64)):
        case.zeros[:], case.weights[:] = zero, weight
        found = np.zeros((1, 1, 1), np.float32)
        case.run(level, found)
        assert found.item() == np.float32((255 - zero) * weight * inputs * 4)


@FEW
@given(seed=SEEDS, channels=st.sampled_from([1, 3, 16, 20, 33]), pixels=st.integers(1, 9))
def test_to_bytes(level: str, seed: int, channels: int, pixels: int) -> None:
    rng = np.random.default_rng(seed)
    reals = (rng.normal(size=(pixels, channels)) * 20).astype(np.float32)
    reals[0, 0] = rng.choice([np.nan, np.inf, -np.inf, 1e38, -0.0])
    inverse, zero = rng.uniform(0.1, 9, channels).astype(np.float32), rng.integers(0, 256, channels).astype(np.float32)
    found = np.zeros(reals.shape, np.uint8)
    kernels.to_bytes(level, reals, inverse, zero, found)
    scaled = np.clip(reals.astype(np.float64) * inverse.astype(np.float64) + zero, -1, 256)
    expected = np.rint(np.clip(np.nan_to_num(scaled).astype(np.float32), 0, 255))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("tie", "byte"), [(0.5, 0), (1.5, 2), (2.5, 2), (254.5, 254), (255.5, 255), (-0.5, 0)])
def test_ties_go_to_the_even_byte(level: str, tie: float, byte: int) -> None:
    found = np.zeros((1, 17), np.uint8)
    kernels.to_bytes(level, np.full((1, 17), tie, np.float32), np.ones(17, np.float32), np.zeros(17, np.float32), found)
    assert (found == byte).all()


@FEW
@given(
    seed=SEEDS,
    channels=st.sampled_from([1, 5, 16, 48, 70]),
    window=st.sampled_from([(1, 1, 0), (2, 2, 0), (3, 2, 1), (3, 1, 1)]),
    ceil=st.booleans(),
    size=st.tuples(st.integers(3, 9), st.integers(3, 9)),
)
def test_max_pool(
    level: str, seed: int, channels: int, window: tuple[int, int, int], ceil: bool, size: tuple[int, int]
) -> None:
    """As the pool of reals, which test_dense compares with numpy."""
    kernel, stride, pad = window
    image = np.random.default_rng(seed).integers(0, 256, (*size, channels)).astype(np.uint8)
    out = [(side + 2 * pad - kernel + (stride - 1 if ceil else 0)) // stride + 1 for side in size]
    out = [o - (ceil and (o - 1) * stride >= side + pad) for o, side in zip(out, size, strict=True)]
    expected = np.zeros((*out, channels), np.float32)
    kernels.pool("scalar", "max", kernel, stride, pad, ceil, image.astype(np.float32), expected)
    found = np.zeros(expected.shape, np.uint8)
    kernels.max_pool_bytes(level, kernel, stride, pad, ceil, image, found)
    np.testing.assert_array_equal(found, expected)


def test_impossible_calls_are_refused() -> None:
    good = Case(
        np.ones((2, 3, 1, 1), np.int8),
        np.zeros(3, np.uint8),
        np.zeros((2, 2, 3), np.uint8),
        *(np.ones(2, np.float32) for _ in range(3)),
        1,
        0,
        "none",
    )
    good.run("scalar", np.zeros((2, 2, 2), np.float32))
    for wrong, message in (
        ({"weights": np.full((2, 3, 1, 1), 65, np.int8)}, "a weight is beyond 64"),
        ({"zeros": np.zeros(2, np.uint8)}, "zeros holds 2 values, expected 3"),
        ({"image": np.zeros((2, 2, 2), np.uint8)}, "the input has too few channels"),
        ({"shift": np.ones(1, np.float32)}, "shift holds 1 values, expected 2"),
        ({"pad": 1}, "impossible convolution shape"),
    ):
        with pytest.raises(ValueError, match=message):
            Case(**(vars(good) | wrong)).run("scalar", np.zeros((2, 2, 2), np.float32))
    with pytest.raises(ValueError, match="no level"):
        good.run("mmx", np.zeros((2, 2, 2), np.float32))
