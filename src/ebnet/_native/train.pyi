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
