"""The sign of activations, and the gradients that stand in for its own."""

import torch
from torch import Tensor

from ebnet.nn.activations.base import ActivationQuantizer
from ebnet.nn.ede import ErrorDecay
from ebnet.nn.estimate import estimated
from ebnet.nn.sign import Ste, hard_sign, sign


class Sign(ActivationQuantizer):
    """sign(x) with one of `Ste`: the clipped identity (BNN), or Bi-Real Net's polynomial."""

    def __init__(self, ste: Ste | str = Ste.CLIP) -> None:
        super().__init__()
        self.ste = Ste(ste)

    def forward(self, x: Tensor) -> Tensor:
        return sign(x, self.ste)

    def bases(self) -> list[tuple[Tensor, Tensor]]:
        return [(torch.ones(()), torch.zeros(()))]


class ErrorDecaySign(Sign):
    """sign(x) with the error decay estimator (IR-Net, Qin et al., 2020)."""

    def __init__(self) -> None:
        super().__init__()
        self.estimator = ErrorDecay()

    def forward(self, x: Tensor) -> Tensor:
        return self.estimator.sign(x)


class LongTailedSign(Sign):
    """sign(x) with the long-tailed higher-order estimator (CCNN, Xu & Cheung, 2019).

    Its derivative is 2 - 4 abs(x) up to abs(x) = 0.4, 0.4 from there to 1, and 0 beyond: a finer approximation near
    zero than Bi-Real Net's, and a tail that lets more activations learn.
    """

    def forward(self, x: Tensor) -> Tensor:
        size = x.detach().abs()
        slope = torch.where(size <= 0.4, 2 - 4 * size, 0.4) * (size <= 1)
        return estimated(hard_sign(x.detach()), slope * x)


class ShiftedSign(ActivationQuantizer):
    """RSign (ReActNet, Liu et al., 2020): sign(x - alpha) with a threshold alpha learned for each channel (eq. 1).

    The gradient of x is Bi-Real Net's polynomial in x - alpha, that of alpha minus their sum (eq. 5).
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.threshold = torch.nn.Parameter(torch.zeros(channels))

    def forward(self, x: Tensor) -> Tensor:
        return sign(x - self.threshold.view(-1, 1, 1), Ste.POLYNOMIAL)

    def bases(self) -> list[tuple[Tensor, Tensor]]:
        return [(torch.ones(()), -self.threshold.detach())]
