"""What an engine gives besides logits."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Prediction:
    """The most probable classes of one image, best first."""

    classes: list[int]
    labels: list[str]
    probabilities: list[float]


@dataclass(frozen=True)
class Trace:
    """Everything a forward pass made: `values[i]` is the result of op i, [batch, height, width, channels]."""

    logits: np.ndarray
    experts: np.ndarray
    values: list[np.ndarray]
