"""The sign alone (Binarized Neural Networks, Courbariaux et al., 2016)."""

import torch
from torch import Tensor

from ebnet.nn.sign import sign
from ebnet.nn.weights.base import WeightQuantizer


class PlainSign(WeightQuantizer):
    """sign(w), eq. 1, without any scale: batch norm has one.

    The gradient is that of the clipped identity, 1 where abs(w) <= 1 (eq. 4).
    """

    def forward(self, weight: Tensor) -> Tensor:
        return sign(weight)

    def bases(self, weight: Tensor) -> list[tuple[Tensor, Tensor]]:
        return [(torch.ones_like(weight[:, 0, 0, 0]), weight)]
