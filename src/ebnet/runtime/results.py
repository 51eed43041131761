"""What an engine gives besides logits."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


@dataclass(frozen=True)
class Prediction:
    """The most probable classes of one image, best first."""

    classes: list[int]
    labels: list[str]
    probabilities: list[float]


class Run(NamedTuple):
    """One forward pass."""

    logits: np.ndarray
    """float32 [batch, classes]."""
    experts: np.ndarray
    """The expert each binary layer chose, in forward order: int64 [layers, batch]."""


@dataclass(frozen=True)
class Trace:
    """Everything a forward pass made: `values[i]` is the result of op i, [batch, height, width, channels]."""

    logits: np.ndarray
    experts: np.ndarray
    values: list[np.ndarray]
