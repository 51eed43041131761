"""An int8 layer of a packed file as a torch module: the same whole numbers, the same roundings.

It stands in for a convolution and the batch norm after it, or for a linear map. Sums are exact in float64; a fused
multiply-add is one in float64 rounded once more, which is the same but for ties of ties.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from ebnet.packing.int8 import LARGEST_WEIGHT, PIXELS, zeros_of


class Int8Layer(nn.Module):
    """`scaled` keeps what the last input was before it was rounded to bytes; `op` is its place in the program."""

    scaled: Tensor
    op: int

    def __init__(
        self,
        layer: nn.Conv2d | nn.Linear,
        code: Any,
        weight: np.ndarray,
        scale: np.ndarray,
        shift: np.ndarray,
        preprocessing: Any,
    ) -> None:
        super().__init__()
        self.stride = layer.stride if isinstance(layer, nn.Conv2d) else None
        self.padding = layer.padding if isinstance(layer, nn.Conv2d) else None
        self.pixels = code == PIXELS
        mean, std = np.float32(preprocessing.mean), np.float32(preprocessing.std)
        step, zero = (np.float32(1) / np.float32(255), zeros_of(preprocessing.mean)) if self.pixels else code
        inverse, offset = (255 * std, 255 * mean) if self.pixels else (np.float32(1) / np.float32(step), zero)
        multiplier = scale.astype(np.float32) * (np.float32(step) / np.float32(LARGEST_WEIGHT))
        self.inverse, self.offset, self.zero = (self._per_channel(v) for v in (inverse, offset, zero))
        self.multiplier, self.shift = self._per_channel(multiplier), self._per_channel(shift.astype(np.float32))
        self.weight = torch.from_numpy(weight.astype(np.float64))

    def _per_channel(self, values: Any) -> Tensor:
        each = torch.from_numpy(np.atleast_1d(np.asarray(values, np.float32)))
        return each if self.stride is None else each[:, None, None]

    def forward(self, x: Tensor) -> Tensor:
        self.scaled = self.to_scaled(x)
        whole = (self.scaled.round() - self.zero).double()
        if self.stride is None:
            sums = functional.linear(whole, self.weight)
        else:
            sums = functional.conv2d(whole, self.weight, None, self.stride, self.padding)  # type: ignore[arg-type]
        return (sums.float().double() * self.multiplier.double() + self.shift.double()).float()

    def to_scaled(self, x: Tensor) -> Tensor:
        """In bytes, not rounded yet. Pixels are found again with two roundings, other bytes with one."""
        if self.pixels:
            return (x * self.inverse + self.offset).clamp(0, 255)
        return (x.double() * self.inverse.double() + self.offset.double()).float().clamp(0, 255)
