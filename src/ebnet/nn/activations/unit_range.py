"""Uniform levels between 0 and 1 at 2 bits (DoReFa-Net, Zhou et al., 2016; SYQ, Faraone et al., 2018)."""

import torch
from torch import Tensor

from ebnet.nn.activations.base import ActivationQuantizer
from ebnet.nn.estimate import rounded

STEPS = 3
"""2^k - 1 for k = 2 bits."""


class UnitRange(ActivationQuantizer):
    """round((2^k - 1) clip(x, 0, 1)) / (2^k - 1) with the gradient of the clip (DoReFa-Net, eq. 5 and 6, eq. 11)."""

    bits = 2

    def forward(self, x: Tensor) -> Tensor:
        return rounded(STEPS * x.clamp(0, 1)) / STEPS

    def levels(self) -> tuple[Tensor, Tensor]:
        steps = torch.arange(STEPS + 1.0)
        return (steps[:-1] + 0.5) / STEPS, steps / STEPS
