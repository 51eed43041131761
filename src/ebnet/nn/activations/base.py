"""What every way of quantizing activations has in common."""

from abc import ABC, abstractmethod

from torch import Tensor, nn

from ebnet.errors import ConfigError


class ActivationQuantizer(nn.Module, ABC):
    """From a layer's real-valued input [batch, channels, height, width] to what the convolution reads.

    Attributes:
        bits: of one activation.
    """

    bits: int = 1

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor:
        """The quantized activations."""

    def bases(self) -> list[tuple[Tensor, Tensor]]:
        """The quantized activations as a sum of signs: pairs of a scale and a shift, for scale * sign(x + shift).

        A scale is one number; a shift is one number, or one per channel. The engine runs a convolution for each pair.
        """
        raise ConfigError(f"{type(self).__name__} activations are no sum of signs")

    def levels(self) -> tuple[Tensor, Tensor]:
        """The quantizer as a staircase: rising thresholds t_i and levels l_0, l_1 ...; l_i from t_i on, l_0 below all.

        For graphs that other runtimes execute.
        """
        raise ConfigError(f"{type(self).__name__} activations are no staircase")
