"""The training of binary networks on the CPU."""

from collections.abc import Sequence
from typing import TypeVar

import numpy
from numpy.typing import NDArray
from torch import Tensor

Scalar = TypeVar("Scalar", bound=numpy.generic)
Array = NDArray[Scalar] | Tensor  # in C order, on the CPU, of exactly this type

def adam(
    addresses: Array[numpy.int64],
    rates: Array[numpy.float64],
    beta1: float,
    beta2: float,
    eps: float,
    threads: int,
    level: str = "",
) -> None:
    """One step of all tensors."""

def crop(
    images: Array[numpy.uint8],
    indices: Array[numpy.int64],
    corners: Array[numpy.int64],
    mirrored: Array[numpy.uint8],
    padding: int,
    out: Array[numpy.uint8],
    threads: int,
) -> None:
    """Fill out [batch, size, size, channels]."""

def resize(
    images: Array[numpy.uint8],
    indices: Array[numpy.int64],
    boxes: Array[numpy.float32],
    mirrored: Array[numpy.uint8],
    out: Array[numpy.uint8],
    threads: int,
) -> None:
    """Fill out [batch, size, size, channels]."""

def normalise(images: Array[numpy.uint8], table: Array[numpy.float32], out: Array[numpy.float32], threads: int) -> None:
    """Fill out [batch, channels, height, width]."""

def real_storage(geometry: Sequence[int]) -> int:
    """Floats that a forward pass keeps for its backward pass."""

def real_forward(
    geometry: Sequence[int],
    activation: str,
    training: bool,
    eps: float,
    momentum: float,
    x: int,
    parameters: Sequence[int],
    mean: int,
    rstd: int,
    z: int,
    y: int,
    y_stride: int,
    threads: int,
    level: str = "",
) -> None:
    """Fill y, mean, rstd and, unless its address is 0, z."""

def real_backward(
    geometry: Sequence[int],
    activation: str,
    training: bool,
    x: int,
    parameters: Sequence[int],
    mean: int,
    rstd: int,
    z: int,
    dy: int,
    dy_stride: int,
    dx: int,
    accumulate: bool,
    gradients: Sequence[int],
    threads: int,
    level: str = "",
) -> None:
    """Fill the gradients of the parameters and, unless its address is 0, dx."""

def max_pool(geometry: Sequence[int], x: int, y: int, y_stride: int, place: int, threads: int, level: str = "") -> None:
    """Fill y and, unless its address is 0, place."""

def max_pool_gradient(
    geometry: Sequence[int], place: int, dy: int, dy_stride: int, dx: int, accumulate: bool, threads: int
) -> None:
    """Fill, or add to, dx."""

class Unit:
    """A binary unit: what it is, and where its parameters lie."""

    def __init__(
        self, arg0: Sequence[int], arg1: Sequence[bool], arg2: int, arg3: Sequence[float], arg4: Sequence[int], /
    ) -> None: ...
    @property
    def kept(self) -> int:
        """Floats kept for backward."""

    @property
    def conv(self) -> int:
        """Numbers of the convolution."""

    @property
    def counts(self) -> bool:
        """Whether these are int16."""

    @property
    def out_size(self) -> list[int]: ...
    def forward(self, tensors: Sequence[int], threads: int, level: str = "") -> bool:
        """
        Fill y and what is kept; False where the gate's means hold NaN or infinity.
        """

    def backward(self, tensors: Sequence[int], skip_is_x: bool, threads: int, level: str = "") -> None:
        """Fill the gradients."""
