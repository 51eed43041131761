"""Learned quantization levels at 2 bits (LQ-Net, Zhang et al., 2018)."""

import torch
from torch import Tensor

from ebnet.nn.activations.base import ActivationQuantizer
from ebnet.nn.estimate import estimated

MOMENTUM = 0.9
"""Of the basis' moving average over the batches (section 3.3)."""
START = 2 * 0.6745 / 3
"""The authors' start: the last of three equal steps is twice the third quartile of a normal distribution."""
CODES = ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0))


class LearnedLevels(ActivationQuantizer):
    """The nearest of the levels 0, v_1, v_2 and v_1 + v_2, the basis v fitted to the activations (eq. 2 to 4).

    While training, each batch fits v by one turn of quantization error minimisation: every value its nearest level,
    then v = (B'B)^-1 B'x for those codes B (eq. 5; the authors' code takes one turn too). The gradient is 1 from 0 to
    the last level, else 0. Activations are those after a ReLU, so their codes have bits of 0 and 1.
    """

    bits = 2
    basis: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("basis", START * torch.tensor([1.0, 2.0]))

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self._fit(x.detach().clamp_min(0))
        thresholds, levels = self.levels()
        values = levels.to(x.dtype)[torch.bucketize(x.detach(), thresholds.to(x.dtype), right=True)]
        return estimated(values, x.minimum(levels[-1].to(x.dtype)).clamp_min(0))

    def levels(self) -> tuple[Tensor, Tensor]:
        levels = self._sorted()[1]
        return (levels[1:] + levels[:-1]) / 2, levels

    def _sorted(self) -> tuple[Tensor, Tensor]:
        codes = torch.tensor(CODES, dtype=self.basis.dtype, device=self.basis.device)
        levels, order = torch.sort(codes @ self.basis)
        return codes[order], levels

    def _fit(self, x: Tensor) -> None:
        codes, levels = self._sorted()
        thresholds = ((levels[1:] + levels[:-1]) / 2).to(x.dtype)
        index = torch.bucketize(x.flatten(), thresholds, right=True)
        counts = torch.bincount(index, minlength=len(levels)).double()
        sums = torch.zeros(len(levels), dtype=torch.float64, device=x.device).index_add_(0, index, x.flatten().double())
        rows = codes.double()
        fit = torch.linalg.pinv(rows.T @ (counts[:, None] * rows), hermitian=True) @ (rows.T @ sums)
        # Where no value has some level its part of the basis is not determined: it stays.
        known = (rows.T @ counts) > 0
        fit = torch.where(known & (fit > 0), fit, self.basis.double()).to(self.basis.dtype)
        self.basis.mul_(MOMENTUM).add_(fit, alpha=1 - MOMENTUM)
