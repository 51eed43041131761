"""Quantization interval learning of activations at 2 bits (QIL, Jung et al., 2019)."""

import torch
from torch import Tensor

from ebnet.nn.activations.base import ActivationQuantizer
from ebnet.nn.estimate import rounded
from ebnet.nn.interval import SMALLEST_HALF_WIDTH, Interval

STEPS = 3
"""q = 2^2 - 1 (eq. 2)."""


class IntervalLevels(ActivationQuantizer):
    """round(3 T(x)) / 3 with T the learned interval and x below it pruned to 0 (eq. 2 and 5; gamma is 1).

    The interval starts as [0, 2], which holds nearly all of what a batch norm gives.
    """

    bits = 2

    def __init__(self) -> None:
        super().__init__()
        self.interval = Interval(1.0, 1.0)

    def forward(self, x: Tensor) -> Tensor:
        return rounded(STEPS * self.interval(x)) / STEPS

    def levels(self) -> tuple[Tensor, Tensor]:
        steps = torch.arange(STEPS + 1.0)
        d = self.interval.half_width.detach().clamp_min(SMALLEST_HALF_WIDTH)
        return self.interval.centre.detach() + 2 * d * ((steps[:-1] + 0.5) / STEPS - 0.5), steps / STEPS
