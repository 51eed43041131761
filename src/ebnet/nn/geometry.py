"""How a kernel walks over its input, and the convolution with its two gradients."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

Pair = tuple[int, int]


class Geometry(NamedTuple):
    """Stride, zero padding, dilation and groups of a 2-D convolution."""

    stride: Pair
    padding: Pair
    dilation: Pair
    groups: int

    def output_size(self, size: Sequence[int], kernel: Sequence[int]) -> list[int]:
        """Height and width of the output map."""
        return [
            (n + 2 * p - d * (k - 1) - 1) // s + 1
            for n, p, d, k, s in zip(size, self.padding, self.dilation, kernel, self.stride, strict=True)
        ]

    def conv(self, x: Tensor, weight: Tensor) -> Tensor:
        return F.conv2d(x, weight, None, *self)

    def input_gradient(self, dy: Tensor, x: Tensor, weight: Tensor) -> Tensor:
        stride, padding, dilation, groups = self
        return torch.ops.aten.convolution_backward(
            dy, x, weight, None, stride, padding, dilation, False, [0, 0], groups, [True, False, False]
        )[0]
