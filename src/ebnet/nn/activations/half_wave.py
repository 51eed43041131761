"""Half-wave Gaussian quantization at 2 bits (HWGQ, Cai et al., 2017)."""

import torch
from torch import Tensor

from ebnet.nn.activations.base import ActivationQuantizer
from ebnet.nn.estimate import estimated

STEP, STEPS = 0.538, 3
"""Uniform levels for the positive half of a normal distribution: 0.538, 1.076 and 1.614, the authors' networks'."""


class HalfWave(ActivationQuantizer):
    """0 for x <= 0, else the nearest of three levels one step apart (eq. 8 to 10).

    The gradient is that of the clipped ReLU: 1 between 0 and the last level, else 0 (eq. 15).
    """

    bits = 2

    def forward(self, x: Tensor) -> Tensor:
        values = STEP * torch.round(x / STEP).clamp(1, STEPS) * (x > 0)
        return estimated(values.detach(), x.clamp(0, STEP * STEPS))

    def levels(self) -> tuple[Tensor, Tensor]:
        steps = torch.arange(STEPS + 1.0)
        smallest = torch.finfo(torch.float32).tiny  # 0 itself belongs below
        return torch.tensor([smallest, *(STEP * (steps[1:-1] + 0.5)).tolist()]), STEP * steps
