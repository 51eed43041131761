"""Quantization interval learning (QIL, Jung et al., 2019): what weights and activations share."""

import torch
from torch import Tensor, nn

SMALLEST_HALF_WIDTH = 1e-4
"""Of an interval: training may not turn it inside out."""


class Interval(nn.Module):
    """The transformer of eq. 3 and 5: abs(x) from [c - d, c + d] to [0, 1], below it 0 (pruned), above it 1 (clipped).

    Inside: alpha abs(x) + beta with alpha = 0.5 / d, beta = -0.5 c / d + 0.5. Centre c and half width d are learned.
    """

    def __init__(self, centre: float = 1.0, half_width: float = 1.0) -> None:
        super().__init__()
        self.centre = nn.Parameter(torch.tensor(centre))
        self.half_width = nn.Parameter(torch.tensor(half_width))

    def begin(self, centre: Tensor, half_width: Tensor) -> None:
        self.centre.data.copy_(centre)
        self.half_width.data.copy_(half_width)

    def forward(self, size: Tensor) -> Tensor:
        d = self.half_width.clamp_min(SMALLEST_HALF_WIDTH)
        return (0.5 * (size - self.centre) / d + 0.5).clamp(0, 1)
