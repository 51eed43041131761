"""One scale for a layer (DoReFa-Net, Zhou et al., 2016)."""

from torch import Tensor

from ebnet.nn.estimate import estimated
from ebnet.nn.sign import hard_sign
from ebnet.nn.weights.base import WeightQuantizer


class LayerMean(WeightQuantizer):
    """E(abs(w)) sign(w) with the mean over the whole layer, and the gradient of the identity (eq. 7 and 8).

    The paper's normalisation by tanh is for weights of more than one bit (eq. 9).
    """

    def forward(self, weight: Tensor) -> Tensor:
        return estimated((weight.abs().mean() * hard_sign(weight)).detach(), weight)

    def bases(self, weight: Tensor) -> list[tuple[Tensor, Tensor]]:
        return [(weight.abs().mean().expand(len(weight)), weight)]
