"""The training of expert convolutions on the CPU."""

from collections.abc import Sequence
from typing import TypeVar

import numpy
from numpy.typing import NDArray
from torch import Tensor

Scalar = TypeVar("Scalar", bound=numpy.generic)
Array = NDArray[Scalar] | Tensor  # in C order, on the CPU, of exactly this type

def sample_gradients(
    x: Array[numpy.float32],
    dy: Array[numpy.float32],
    theta: Array[numpy.float32],
    chosen: Array[numpy.int64],
    geometry: Sequence[int],
    estimator: str,
    dtheta: Array[numpy.float32],
    dgate: Array[numpy.float32],
    threads: int,
    level: str = "",
) -> None:
    """Fill dtheta [experts, ...] and dgate [batch, experts]."""

def forward(
    x: Array[numpy.float32],
    theta: Array[numpy.float32],
    chosen: Array[numpy.int64],
    geometry: Sequence[int],
    binary: bool,
    y: Array[numpy.float32],
    threads: int,
    level: str = "",
) -> None:
    """Fill y [batch, out, h, w]."""

def input_gradient(
    dy: Array[numpy.float32],
    theta: Array[numpy.float32],
    chosen: Array[numpy.int64],
    geometry: Sequence[int],
    binary: bool,
    dx: Array[numpy.float32],
    threads: int,
    level: str = "",
) -> None:
    """Fill dx [batch, in, h, w]."""

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
