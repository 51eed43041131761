"""How large the numbers are that a value was added up from: float error is relative to them, not to their sum.

A unit adds its branch to the stream that the units before it have added to. Where the parts cancel, what they add up to
is small, and their error is what it was: so sizes add up along the skips. A real layer's sum is of its products. Its
inputs' errors count with what they are themselves: carried on through all layers, the bound would be far too wide.
"""

from typing import Any

import numpy as np
import torch
from torch.nn.functional import conv2d

from ebnet.runtime.results import Trace


class Sizes:
    """Of the values of a traced run, as NCHW maps; each is made when it is first asked for.

    Args:
        layers: weights and norms of the real convolutions by their op. (Those in int8 add without error.)
    """

    def __init__(
        self,
        program: list[dict[str, Any]],
        layers: dict[int, tuple[np.ndarray, np.ndarray]],
        trace: Trace,
        images: np.ndarray,
    ) -> None:
        self.program, self.layers, self.trace, self.images = program, layers, trace, images
        self._known: dict[int, np.ndarray] = {}

    def value(self, index: int) -> np.ndarray:
        """The value itself."""
        return self.images if index == 0 else self.trace.values[index - 1].transpose(0, 3, 1, 2)

    def of(self, index: int) -> np.ndarray:
        """The sizes of its parts together."""
        if index not in self._known:
            self._known[index] = np.abs(self.images) if index == 0 else self._made(index - 1)
        return self._known[index]

    def _made(self, index: int) -> np.ndarray:
        """Of what op `index` made."""
        op, made = self.program[index], self.value(index + 1)
        if op["op"] == "binary" and "skip" in op:
            return np.abs(made - self.value(op["skip"])) + self.of(op["skip"])
        if op["op"] == "sum":
            parts = zip(op["factors"], op["in"], strict=True)
            return np.asarray(sum(abs(factor) * self.of(part) for factor, part in parts))
        if op["op"] == "concat":
            return np.concatenate([self.of(part) for part in op["in"]], 1)
        if index in self.layers:
            return _products(op, self.value(op["in"][0]), *self.layers[index])
        return np.abs(made)


def _products(op: dict[str, Any], read: np.ndarray, weight: np.ndarray, norm: np.ndarray) -> np.ndarray:
    x, w, (scale, shift) = (torch.from_numpy(np.abs(array).astype(np.float32)) for array in (read, weight, norm))
    sums = conv2d(x, w, stride=op.get("stride", 1), padding=op.get("pad", 0))
    return (sums * scale[:, None, None] + shift[:, None, None]).numpy()
