"""A sum of several binary filters (ABC-Net, Lin et al., 2017)."""

import torch
from torch import Tensor

from ebnet.nn.estimate import estimated
from ebnet.nn.sign import hard_sign
from ebnet.nn.weights.base import WeightQuantizer


class MultiBase(WeightQuantizer):
    """w ~ sum_m alpha_m B_m, B_m = sign(w - mean(w) + u_m std(w)), u_m = -1 + 2 (m - 1) / (M - 1) (eq. 2 and 3).

    alpha is the least-squares fit over the layer (eq. 4). The signs' gradient is the identity's, so that of the latent
    weights is the sum of alpha_m times that of the result (eq. 5). With one base u is 0.
    """

    def __init__(self, bases: int) -> None:
        super().__init__()
        self.count = self.bits = bases

    def forward(self, weight: Tensor) -> Tensor:
        with torch.no_grad():
            signs, alpha = self._fit(weight)
            values = torch.tensordot(alpha, signs, 1)
            slope = alpha.sum()
        return estimated(values, slope * weight)

    def bases(self, weight: Tensor) -> list[tuple[Tensor, Tensor]]:
        signs, alpha = self._fit(weight)
        return [(a.expand(len(weight)), base) for a, base in zip(alpha, signs, strict=True)]

    def _fit(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        weight = weight.detach()
        shifts = torch.linspace(-1, 1, self.count) if self.count > 1 else torch.zeros(1)
        spread = shifts.to(weight).view(-1, *[1] * weight.dim()) * weight.std(correction=0)
        signs = hard_sign(weight - weight.mean() + spread)
        rows = signs.flatten(1).double()
        # Two bases may be equal where a layer has few weights: the least-norm solution shares their scale.
        alpha = torch.linalg.pinv(rows @ rows.T, hermitian=True) @ (rows @ weight.flatten().double())
        return signs, alpha.to(weight.dtype)
