"""No quantization: the rows of the tables with real-valued activations."""

from torch import Tensor

from ebnet.nn.activations.base import ActivationQuantizer


class Real(ActivationQuantizer):
    """x itself, as in BWN, TTQ and DSQ at 32 bits."""

    bits = 32

    def forward(self, x: Tensor) -> Tensor:
        return x
