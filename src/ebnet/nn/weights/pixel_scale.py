"""Symmetric quantization with a learned scale for each place of a kernel (SYQ, Faraone et al., 2018)."""

import torch
from torch import Tensor, nn

from ebnet.nn.sign import sign
from ebnet.nn.weights.base import WeightQuantizer


class PixelScale(WeightQuantizer):
    """alpha_xy sign(w): one learned scale for each of the kernel's places, shared by all filters (section 3.2).

    A scale starts at mean(abs(w)) of its place (eq. 8) and learns by the sum of its weights' gradients times their
    signs (eq. 9). The sign's gradient is the clipped identity; the authors' code does not clip it, and weights are
    seldom beyond 1.
    """

    def __init__(self, kernel: tuple[int, int]) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.ones(kernel))

    def begin(self, weight: Tensor) -> None:
        self.alpha.data.copy_(weight.abs().mean((0, 1)))

    def forward(self, weight: Tensor) -> Tensor:
        return self.alpha * sign(weight)
