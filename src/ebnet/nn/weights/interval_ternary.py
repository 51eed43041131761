"""Quantization interval learning of weights at 2 bits (QIL, Jung et al., 2019)."""

import torch
from torch import Tensor, nn

from ebnet.nn.estimate import rounded
from ebnet.nn.interval import Interval
from ebnet.nn.weights.base import WeightQuantizer


class IntervalTernary(WeightQuantizer):
    """sign(w) round(T(abs(w))^gamma): with 2 bits, q = 2^(2 - 1) - 1 = 1, so -1, 0 or +1 (eq. 2 and 3).

    T is `Interval`; its centre and width and gamma are learned with the weights, through the rounding as through the
    identity.
    """

    bits = 2

    def __init__(self) -> None:
        super().__init__()
        self.interval = Interval()
        self.gamma = nn.Parameter(torch.ones(()))

    def begin(self, weight: Tensor) -> None:
        """Nothing pruned and nothing clipped: the interval is [0, max(abs(w))]."""
        half = 0.5 * weight.abs().max()
        self.interval.begin(half, half)

    def forward(self, weight: Tensor) -> Tensor:
        inside = self.interval(weight.abs())
        # A power's derivative by its exponent has a logarithm: of 0 it would be NaN, so pruned weights stay out of it.
        power = torch.where(inside > 0, inside.clamp_min(1e-12) ** self.gamma, inside)
        return torch.sign(weight).detach() * rounded(power)
