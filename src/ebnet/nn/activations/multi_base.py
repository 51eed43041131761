"""A sum of several binary activations (ABC-Net, Lin et al., 2017)."""

import torch
from torch import Tensor, nn

from ebnet.nn.activations.base import ActivationQuantizer
from ebnet.nn.estimate import estimated
from ebnet.nn.sign import hard_sign


class MultiBaseSign(ActivationQuantizer):
    """x ~ sum_n beta_n A_n, A_n = 2 [h_n >= 0.5] - 1 with h_n = clip(x + v_n, 0, 1); beta and v are learned (eq. 7, 8).

    A_n's gradient is that of h_n (eq. 9). The shifts start evenly from -1 to 1 around 0.5, where A is the sign.
    """

    def __init__(self, bases: int) -> None:
        super().__init__()
        self.bits = bases
        shifts = torch.linspace(-1, 1, bases) if bases > 1 else torch.zeros(1)
        self.shift = nn.Parameter(shifts + 0.5)
        self.scale = nn.Parameter(torch.full((bases,), 1 / bases))

    def forward(self, x: Tensor) -> Tensor:
        y = torch.zeros_like(x)
        for scale, shift in zip(self.scale, self.shift, strict=True):
            h = x + shift
            y = y + scale * estimated(hard_sign(h.detach() - 0.5), h.clamp(0, 1))
        return y

    def bases(self) -> list[tuple[Tensor, Tensor]]:
        return list(zip(self.scale.detach(), self.shift.detach() - 0.5, strict=True))
