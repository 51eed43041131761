"""Differentiable soft quantization at one bit (DSQ, Gong et al., 2019)."""

import torch
from torch import Tensor, nn

from ebnet.nn.estimate import estimated
from ebnet.nn.sign import hard_sign
from ebnet.nn.weights.base import WeightQuantizer

ALPHA_RANGE = 1e-3, 0.499
"""alpha is the error that the soft step leaves at an interval's middle; below 0.5 (eq. 6)."""


class SoftSign(WeightQuantizer):
    """u sign(w) with the gradient of the soft step that approaches it (eq. 2 to 7 with b = 1, l = -u, Delta = 2u).

    Between -u and u the step is phi(w) = u tanh(k w) / tanh(k u) with k = ln(2 / alpha - 1) / (2 u); beyond, u. How
    far it is from a sign, alpha, and the bound u are learned.
    """

    def __init__(self) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.tensor(0.2))
        self.bound = nn.Parameter(torch.ones(()))

    def begin(self, weight: Tensor) -> None:
        """The least-squares scale of these weights."""
        self.bound.data.copy_(weight.abs().mean())

    def forward(self, weight: Tensor) -> Tensor:
        u = self.bound.abs()
        k = torch.log(2 / self.alpha.clamp(*ALPHA_RANGE) - 1) / (2 * u)
        inside = torch.maximum(torch.minimum(weight, u), -u)
        soft = u * torch.tanh(k * inside) / torch.tanh(k * u)
        return estimated((u * hard_sign(weight)).detach(), soft)

    def bases(self, weight: Tensor) -> list[tuple[Tensor, Tensor]]:
        return [(self.bound.abs().expand(len(weight)), weight)]
