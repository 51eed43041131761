"""The mean size of each filter as its scale (XNOR-Net and BWN, Rastegari et al., 2016)."""

from torch import Tensor

from ebnet.nn.estimate import estimated
from ebnet.nn.sign import sign
from ebnet.nn.weights.base import WeightQuantizer, row_means


class ChannelMean(WeightQuantizer):
    """alpha sign(w) with alpha = mean(abs(w)) of the filter, the least-squares scale (section 3.1, eq. 6).

    The gradient is the paper's: dC/dw_i = dC/dw~_i (1 / n + alpha [abs(w_i) <= 1]), n weights in a filter.
    """

    def forward(self, weight: Tensor) -> Tensor:
        n = weight[0].numel()
        return estimated(row_means(weight).detach() * sign(weight), weight / n)

    def bases(self, weight: Tensor) -> list[tuple[Tensor, Tensor]]:
        return [(row_means(weight).flatten(), weight)]
