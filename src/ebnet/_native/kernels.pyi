"""Each kernel by name, for tests and benchmarks."""

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy
from numpy.typing import NDArray
from torch import Tensor

Scalar = TypeVar("Scalar", bound=numpy.generic)
Array = NDArray[Scalar] | Tensor  # in C order, on the CPU, of exactly this type

def names() -> list[tuple[str, bool]]:
    """Every binary convolution kernel and whether this CPU runs it."""

def select(shape: Sequence[int], isa: str) -> str:
    """The kernel an instruction set gives a shape."""

def supports(name: str, shape: Sequence[int]) -> bool:
    """Whether a kernel runs a shape, on a CPU that has its instructions."""

def requested_isa() -> str:
    """EBNET_ISA, or the best of this CPU."""

def requested_levels() -> tuple[str, str]:
    """
    Levels of the real-valued kernels and of those on bytes: those of EBNET_ISA, or the best of this CPU.
    """

def run(
    name: str,
    shape: Sequence[int],
    weights: Array[numpy.uint8],
    input: Array[numpy.uint64],
    *,
    scale: Array[numpy.float32] | None = None,
    slope: Array[numpy.float32] | None = None,
    skip: Array[Any] | None = None,
    bn_scale: Array[numpy.float32] | None = None,
    bn_shift: Array[numpy.float32] | None = None,
    bits_per_group: int = 0,
    stream: Array[Any] | None = None,
    bits: Array[numpy.uint64] | None = None,
    row_sums: Array[numpy.float32] | None = None,
    dots: Array[numpy.int32] | None = None,
    split: int = 0,
    skip_type: str = "fp32",
    stream_type: str = "fp32",
    shift: Array[numpy.float32] | None = None,
    after: Array[numpy.float32] | None = None,
    act_last: bool = False,
) -> str:
    """Run one kernel into the arrays given; returns its name."""

class Timing:
    def __init__(self, name: str, shape: Sequence[int]) -> None: ...
    def time(self, fused: bool, repeats: int) -> list[float]: ...
    @property
    def macs(self) -> float: ...

def core_clock() -> float:
    """The core clock in Hz, measured now."""

def dense_levels() -> list[tuple[str, bool]]:
    """Every level of the real-valued kernels and whether this CPU runs it."""

def dense_conv(
    level: str,
    shape: Sequence[int],
    weights: Array[numpy.float32],
    scale: Array[numpy.float32] | None,
    shift: Array[numpy.float32] | None,
    activation: str,
    slope: Array[numpy.float32] | None,
    input: Array[numpy.float32],
    output: Array[numpy.float32],
    split: int = 0,
) -> None: ...
def pool(
    level: str,
    kind: str,
    kernel: int,
    stride: int,
    pad: int,
    ceil_mode: bool,
    input: Array[numpy.float32],
    output: Array[numpy.float32],
) -> None: ...
def global_average_pool(level: str, input: Array[numpy.float32], output: Array[numpy.float32]) -> None: ...
def linear(
    level: str,
    weights: Array[numpy.float32],
    bias: Array[numpy.float32] | None,
    activation: str,
    slope: Array[numpy.float32] | None,
    input: Array[numpy.float32],
    output: Array[numpy.float32],
) -> None: ...
def binarize(
    input: Array[numpy.float32],
    per_group: int,
    bn_scale: Array[numpy.float32],
    bn_shift: Array[numpy.float32],
    bits: Array[numpy.uint64],
    sums: Array[numpy.float32],
) -> None: ...
def int8_levels() -> list[tuple[str, bool]]:
    """Every level of the int8 kernels and whether this CPU runs it."""

def int8_conv(
    level: str,
    weights: Array[numpy.int8],
    zeros: Array[numpy.uint8],
    multiplier: Array[numpy.float32],
    shift: Array[numpy.float32],
    slope: Array[numpy.float32] | None,
    relu: bool,
    stride: int,
    pad: int,
    input: Array[numpy.uint8],
    reals: Array[numpy.float32] | None,
    bytes: Array[numpy.uint8] | None,
    step: float = 1.0,
    zero: int = 0,
    split: int = 0,
) -> None: ...
def to_bytes(
    level: str,
    input: Array[numpy.float32],
    inverse: Array[numpy.float32],
    zero: Array[numpy.float32],
    output: Array[numpy.uint8],
) -> None: ...
def max_pool_bytes(
    level: str,
    kernel: int,
    stride: int,
    pad: int,
    ceil_mode: bool,
    input: Array[numpy.uint8],
    output: Array[numpy.uint8],
) -> None: ...
