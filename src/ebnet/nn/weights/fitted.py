"""Learned quantization of weights at one bit (LQ-Net, Zhang et al., 2018)."""

from torch import Tensor

from ebnet.nn.estimate import estimated
from ebnet.nn.sign import hard_sign
from ebnet.nn.weights.base import row_means
from ebnet.nn.weights.channel_mean import ChannelMean


class Fitted(ChannelMean):
    """v sign(w), v the filter's least-squares level: with one bit, its fit v = (B'B)^-1 B'w is mean(abs(w)).

    The gradient is the identity's, as in the authors' code, which tells it from `ChannelMean`. That code keeps v as a
    moving average over the steps; here it is that of the weights as they are.
    """

    def forward(self, weight: Tensor) -> Tensor:
        return estimated((row_means(weight) * hard_sign(weight)).detach(), weight)
