"""Random binary convolutions, and one way to run any kernel on them: native or emulated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np
import torch
from hypothesis import strategies as st

from ebnet._native import kernels

Runner = Callable[..., str]
"""A function with the signature of `ebnet._native.kernels.run` without the kernel's name."""


STREAM_TYPES = ["fp32", "fp16", "bf16"]
"""As the native StreamType has them."""


@dataclass(frozen=True)
class Shape:
    """The numbers of a native ConvShape, in its order."""

    in_channels: int
    out_channels: int
    groups: int
    kernel_h: int
    kernel_w: int
    stride_h: int
    stride_w: int
    pad_h: int
    pad_w: int
    dilation_h: int
    dilation_w: int
    in_h: int
    in_w: int

    def numbers(self) -> list[int]:
        return [getattr(self, field.name) for field in fields(self)]

    @property
    def out_h(self) -> int:
        return (self.in_h + 2 * self.pad_h - self.dilation_h * (self.kernel_h - 1) - 1) // self.stride_h + 1

    @property
    def out_w(self) -> int:
        return (self.in_w + 2 * self.pad_w - self.dilation_w * (self.kernel_w - 1) - 1) // self.stride_w + 1


@st.composite
def shapes(draw: st.DrawFn, most: int = 96, least_out: int = 1, sizes: tuple[int, ...] = (1, 3, 5)) -> Shape:
    """Any groups, kernel sizes, stride, dilation, padding, odd sizes, and channels that fill no word.

    Groups have at most `most` channels, or `least_out` and a few more of output.
    """
    groups = draw(st.sampled_from([1, 2, 3, 4, 8]))
    channels = st.one_of(st.sampled_from([1, 2, 4, 8, 11, 16, 17, 22, 24, 32, 44, 48, 64, 96]), st.integers(1, most))
    kernel = st.sampled_from(sizes)
    outputs = channels if least_out == 1 else st.integers(least_out, max(most, least_out + 40))
    step = st.sampled_from([1, 2])
    kernel_h, kernel_w = draw(kernel), draw(kernel)
    dilation_h, dilation_w = draw(step), draw(step)
    pad_h, pad_w = draw(st.integers(0, 3)), draw(st.integers(0, 3))
    least_h = max(1, dilation_h * (kernel_h - 1) + 1 - 2 * pad_h)
    least_w = max(1, dilation_w * (kernel_w - 1) + 1 - 2 * pad_w)
    return Shape(
        groups * draw(channels),
        groups * draw(outputs),
        groups,
        kernel_h,
        kernel_w,
        draw(step),
        draw(step),
        pad_h,
        pad_w,
        dilation_h,
        dilation_w,
        least_h + draw(st.integers(0, 8)),
        least_w + draw(st.integers(0, 36)),
    )


@st.composite
def plain_shapes(draw: st.DrawFn) -> Shape:
    """Kernels of one or three columns, rows of seven pixels or more: there kernels have plain tiles."""
    groups = draw(st.sampled_from([1, 2, 4]))
    kernel_w = draw(st.sampled_from([1, 3]))
    # A kernel of one column takes its three words for a carry-save step from one pixel.
    inputs = st.sampled_from([2, 6, 8, 11, 16, 32, 34, 64, 70] if kernel_w == 3 else [65, 66, 96, 100, 128, 160, 250])
    kernel_h, dilation_h = draw(st.sampled_from([1, 3])), draw(st.sampled_from([1, 2]))
    stride_w, pad_w = draw(st.sampled_from([1, 2])), draw(st.integers(0, kernel_w // 2))
    out_w = draw(st.sampled_from([7, 8, 9, 13, 14, 16, 17]))
    return Shape(
        groups * draw(inputs),
        groups * draw(st.sampled_from([1, 4, 8, 11, 16, 20, 32, 44, 48, 64])),
        groups,
        kernel_h,
        kernel_w,
        draw(st.sampled_from([1, 2])),
        stride_w,
        draw(st.integers(0, 2)),
        pad_w,
        dilation_h,
        1,
        dilation_h * (kernel_h - 1) + draw(st.integers(1, 4)),
        (out_w - 1) * stride_w + kernel_w - 2 * pad_w + draw(st.integers(0, stride_w - 1)),
    )


def pack_planes(bits: np.ndarray, groups: int) -> np.ndarray:
    """Bits [..., channels] to words [..., groups, ceil(channels per group / 64)], unused bits 0."""
    per_group = bits.shape[-1] // groups
    grouped = bits.reshape(*bits.shape[:-1], groups, per_group)
    padded = np.zeros((*grouped.shape[:-1], (per_group + 63) // 64 * 64), np.uint8)
    padded[..., :per_group] = grouped
    return np.packbits(padded, axis=-1, bitorder="little").view("<u8")


@dataclass
class Case:
    """Signs of one sample and one expert, and the epilogue's parameters."""

    shape: Shape
    input: np.ndarray  # bool [h, w, in]
    weights: np.ndarray  # bool [out, kh, kw, in / groups]
    scale: np.ndarray
    slope: np.ndarray
    skip: np.ndarray
    bn_scale: np.ndarray
    bn_shift: np.ndarray
    next_groups: int
    shift: np.ndarray | None = None
    after: np.ndarray | None = None
    act_last: bool = False

    def canonical(self) -> np.ndarray:
        """Weights as the packed file holds them."""
        return np.packbits(self.weights.reshape(self.shape.out_channels, -1), axis=1, bitorder="little")


def make_case(shape: Shape, seed: int) -> Case:
    """Values include exact zeros of both signs where a sign is taken, and slopes of both signs."""
    rng = np.random.default_rng(seed)
    s = shape
    channels = s.out_channels
    divisors = [g for g in range(1, channels + 1) if channels % g == 0]
    bn_shift = rng.normal(size=channels).astype(np.float32)
    bn_scale = rng.normal(size=channels).astype(np.float32)
    zero = rng.random(channels) < 0.2
    bn_scale[zero], bn_shift[zero] = 0.0, rng.choice([0.0, -0.0], zero.sum())
    return Case(
        s,
        rng.random((s.in_h, s.in_w, s.in_channels)) < 0.5,
        rng.random((channels, s.kernel_h, s.kernel_w, s.in_channels // s.groups)) < 0.5,
        rng.normal(size=channels).astype(np.float32),
        rng.normal(size=channels).astype(np.float32),
        rng.normal(size=(s.out_h, s.out_w, channels)).astype(np.float32),
        bn_scale,
        bn_shift,
        int(rng.choice(divisors)),
    )


@dataclass
class Result:
    kernel: str
    dots: np.ndarray
    stream: np.ndarray
    bits: np.ndarray
    row_sums: np.ndarray


def native(name: str) -> Runner:
    return lambda *arguments, **options: kernels.run(name, *arguments, **options)


def narrowed(values: np.ndarray, stream_type: str) -> np.ndarray:
    """Values as a stream of that type holds them: float32, or the bits of the narrow type, rounded to the nearest."""
    if stream_type == "fp32":
        return values
    if stream_type == "fp16":
        with np.errstate(over="ignore"):
            return values.astype(np.float16).view(np.uint16)
    return torch.from_numpy(values).to(torch.bfloat16).view(torch.uint16).numpy()


def widened(values: np.ndarray, stream_type: str) -> np.ndarray:
    """What `narrowed` gave, as float32."""
    if stream_type == "fp32":
        return values
    if stream_type == "fp16":
        return values.view(np.float16).astype(np.float32)
    return (values.astype(np.uint32) << 16).view(np.float32)


def run_case(
    run: Runner,
    case: Case,
    split: int = 0,
    want_dots: bool = True,
    skip_type: str = "fp32",
    stream_type: str = "fp32",
) -> Result:
    """Dot products and the full epilogue. Without dots the kernels take their path for a network's body."""
    s = case.shape
    pixels = (s.out_h, s.out_w)
    per_group = s.out_channels // case.next_groups
    result = Result(
        "",
        np.full((*pixels, s.out_channels), -7, np.int32),
        narrowed(np.full((*pixels, s.out_channels), np.nan, np.float32), stream_type),
        np.full((*pixels, case.next_groups, (per_group + 63) // 64), 2**64 - 1, np.uint64),
        np.full((s.out_h, s.out_channels), np.nan, np.float32),
    )
    result.kernel = run(
        s.numbers(),
        case.canonical(),
        pack_planes(case.input, s.groups),
        scale=case.scale,
        slope=case.slope,
        skip=narrowed(case.skip, skip_type),
        bn_scale=case.bn_scale,
        bn_shift=case.bn_shift,
        bits_per_group=per_group,
        stream=result.stream,
        bits=result.bits,
        row_sums=result.row_sums,
        dots=result.dots if want_dots else None,
        split=split,
        skip_type=skip_type,
        stream_type=stream_type,
        shift=case.shift,
        after=case.after,
        act_last=case.act_last,
    )
    return result


def with_another_unit(case: Case, seed: int) -> Case:
    """The steps that units of other papers have: shifts before and after the activation, and that after the skip."""
    rng = np.random.default_rng(seed)
    choice = rng.integers(1, 8)
    channels = case.shape.out_channels
    if choice & 1:
        case.shift = rng.normal(size=channels).astype(np.float32)
    if choice & 2:
        case.after = rng.normal(size=channels).astype(np.float32)
    case.act_last = bool(choice & 4)
    return case


def assert_equal(got: Result, expected: Result) -> None:
    """Bit for bit: integers, floats and packed signs."""
    np.testing.assert_array_equal(got.dots, expected.dots)
    np.testing.assert_array_equal(got.stream.view(np.uint8), expected.stream.view(np.uint8))
    np.testing.assert_array_equal(got.bits, expected.bits)
    np.testing.assert_array_equal(got.row_sums.view(np.uint32), expected.row_sums.view(np.uint32))
