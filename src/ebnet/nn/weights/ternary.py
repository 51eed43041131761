"""Trained ternary quantization (TTQ, Zhu et al., 2017)."""

import torch
from torch import Tensor, nn

from ebnet.nn.estimate import estimated
from ebnet.nn.weights.base import WeightQuantizer

THRESHOLD = 0.05
"""t of eq. 9: the part of the layer's largest weight below which a weight becomes 0."""


class TrainedTernary(WeightQuantizer):
    """W_p above Delta, -W_n below -Delta, else 0, with Delta = 0.05 max(abs(w)) (eq. 6 and 9), both learned.

    The latent weights' gradient is scaled by W_p, 1 or W_n, by where they are (eq. 8). W_p and W_n get the sums of the
    gradients of the weights they stand for (eq. 7; for W_n with the sign that the chain rule gives it, as in the
    authors' code, which starts both at 1).
    """

    bits = 2

    def __init__(self) -> None:
        super().__init__()
        self.positive = nn.Parameter(torch.ones(()))
        self.negative = nn.Parameter(torch.ones(()))

    def begin(self, weight: Tensor) -> None:
        """The best two values for these weights: the means of what they stand for."""
        above, below = self._places(weight)
        for parameter, place in ((self.positive, above), (self.negative, below)):
            parameter.data.copy_((weight.abs() * place).sum() / place.sum().clamp_min(1))

    def forward(self, weight: Tensor) -> Tensor:
        above, below = self._places(weight)
        factor = torch.where(above > 0, self.positive, torch.where(below > 0, self.negative, torch.ones_like(weight)))
        return estimated(self.positive * above - self.negative * below, weight * factor.detach())

    def _places(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        latent = weight.detach()
        delta = THRESHOLD * latent.abs().max()
        return (latent > delta).to(weight.dtype), (latent < -delta).to(weight.dtype)
