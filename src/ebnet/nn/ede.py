"""The error decay estimator (IR-Net, Qin et al., 2020): a gradient for sign that sharpens while training goes on."""

import math

import torch
from torch import Tensor, nn

from ebnet.nn.estimate import estimated
from ebnet.nn.sign import hard_sign

SHARPNESS = 0.1, 10.0
"""T_min and T_max: t at the start and at the end of training, the paper's.

The authors' CIFAR-10 code starts at 0.001: below 0.1 the gradient is within 1 % of the identity's for abs(x) <= 1.
"""


class ErrorDecay(nn.Module):
    """sign(x) with the gradient of g(x) = k tanh(t x), k = max(1 / t, 1) (eq. 8 to 12).

    t = T_min 10^(progress log10(T_max / T_min)): first nearly the identity, which updates every weight, at last nearly
    sign itself.

    Attributes:
        progress: the share of the stage that is trained, from 0 to 1; the trainer sets it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.progress = 0.0

    @property
    def sharpness(self) -> float:
        low, high = SHARPNESS
        return low * 10 ** (self.progress * math.log10(high / low))

    def sign(self, x: Tensor) -> Tensor:
        t = self.sharpness
        return estimated(hard_sign(x.detach()), max(1 / t, 1.0) * torch.tanh(t * x))


def error_decays(module: nn.Module) -> list[ErrorDecay]:
    """Every such estimator inside `module`: what is to be told how much of a stage is trained."""
    return [layer for layer in module.modules() if isinstance(layer, ErrorDecay)]
