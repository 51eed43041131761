"""Magnitude-aware weights (Bi-Real Net, Liu et al., 2018; kept by ReActNet, Liu et al., 2020)."""

from torch import Tensor

from ebnet.nn.sign import sign
from ebnet.nn.weights.base import row_means
from ebnet.nn.weights.channel_mean import ChannelMean


class Magnitude(ChannelMean):
    """mean(abs(w)) sign(w), the mean taken as a constant: dC/dw = dC/dw~ mean(abs(w)) [abs(w) <= 1] (section 3.3).

    The size of w then steers how large its gradient is, which that of a bare sign cannot. The PyTorch code of both
    papers' authors leaves the mean out of the gradient; Adam, which divides by the gradient's size, sees little of it.
    """

    def forward(self, weight: Tensor) -> Tensor:
        return row_means(weight).detach() * sign(weight)
