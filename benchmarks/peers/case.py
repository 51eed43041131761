"""What a peer is given, and what it gives back."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from torch import Tensor, nn


@dataclass(frozen=True)
class Case:
    """A network to build, and for how many pictures and threads."""

    model: nn.Sequential
    calibration: Tensor
    """Pictures to find the scales of int8 activations on, normalised, channels first."""
    batch: int
    threads: int


@dataclass(frozen=True)
class Run:
    """A network that is ready: float32 pictures in, logits out."""

    call: Callable[[np.ndarray], np.ndarray]
    channels_last: bool = False
