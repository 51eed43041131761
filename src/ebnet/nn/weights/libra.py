"""Libra parameter binarization (IR-Net, Qin et al., 2020)."""

import torch
from torch import Tensor

from ebnet.nn.ede import ErrorDecay
from ebnet.nn.weights.base import WeightQuantizer

SMALLEST_DEVIATION = 1e-8
"""A filter of equal weights has none; it must not become NaN."""


class Libra(WeightQuantizer):
    """2^s sign(w_std): filters balanced to mean 0 and scaled to deviation 1, and a scale that is a shift (eq. 5 to 7).

    w_std = (w - mean(w)) / std(w - mean(w)), s = round(log2(mean(abs(w_std)))). Balanced signs carry the most
    information, one bit a weight. The sign's gradient is the error decay estimator's, as for the activations; it flows
    on through mean and deviation (taken over all n weights of a filter; the authors' code divides by n - 1).
    """

    def __init__(self) -> None:
        super().__init__()
        self.estimator = ErrorDecay()

    def forward(self, weight: Tensor) -> Tensor:
        standard = self._standard(weight)
        return self._shift(standard).detach() * self.estimator.sign(standard)

    def bases(self, weight: Tensor) -> list[tuple[Tensor, Tensor]]:
        standard = self._standard(weight)
        return [(self._shift(standard).flatten(), standard)]

    def _standard(self, weight: Tensor) -> Tensor:
        inner = tuple(range(1, weight.dim()))
        centred = weight - weight.mean(inner, keepdim=True)
        return centred / centred.std(inner, correction=0, keepdim=True).clamp_min(SMALLEST_DEVIATION)

    def _shift(self, standard: Tensor) -> Tensor:
        size = standard.abs().mean(tuple(range(1, standard.dim())), keepdim=True)
        return torch.exp2(torch.round(torch.log2(size)))
