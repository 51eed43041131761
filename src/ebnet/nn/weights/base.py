"""What every way of quantizing weights has in common."""

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import Tensor, nn

from ebnet.errors import ConfigError


class WeightQuantizer(nn.Module, ABC):
    """From latent real weights [rows, in / groups, kh, kw] to those the convolution uses; a row is an output channel.

    With N experts their rows lie one after another. A quantizer whose statistics are of the whole layer takes them over
    all of its experts.

    Attributes:
        bits: of one weight.
        learns_scale: whether the layer's scale per output channel is learned beside, by gradient.
    """

    bits: int = 1
    learns_scale: ClassVar[bool] = False

    def begin(self, weight: Tensor) -> None:
        """Take starting values from the weights that are about to be quantized."""

    @abstractmethod
    def forward(self, weight: Tensor) -> Tensor:
        """The quantized weights."""

    def bases(self, weight: Tensor) -> list[tuple[Tensor, Tensor]]:
        """The quantized weights as a sum of one-bit ones: pairs of a scale per row and a tensor whose signs count.

        One pair for a one-bit quantizer whose two values are of equal size; the engine runs a convolution for each.
        """
        raise ConfigError(f"{type(self).__name__} weights are no sum of signs with a scale per output channel")


def row_means(weight: Tensor) -> Tensor:
    """mean(abs(w)) of every row, shaped to multiply the weights."""
    return weight.abs().mean(tuple(range(1, weight.dim())), keepdim=True)
