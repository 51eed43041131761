"""Precision is state, not class: one network moves through the paper's stages (section 3, "Background")."""

from enum import StrEnum

from torch import Tensor, nn

from ebnet.errors import ConfigError


class Precision(StrEnum):
    """What of a binary layer is binary.

    REAL: nothing (the real-valued teacher). BINARY_INPUT: the activations (Stage I).
    BINARY: activations and weights (Stage II).
    """

    REAL = "real"
    BINARY_INPUT = "binary_input"
    BINARY = "binary"

    @property
    def binary_input(self) -> bool:
        return self is not Precision.REAL

    @property
    def binary_weights(self) -> bool:
        return self is Precision.BINARY

    @classmethod
    def parse(cls, value: "Precision | str") -> "Precision":
        try:
            return cls(value)
        except ValueError:
            raise ConfigError(f"precision={value!r}: expected one of {', '.join(cls)}") from None


def set_precision(module: nn.Module, precision: Precision | str) -> None:
    """Move every binary layer inside `module` to `precision`; layers fold their weights' size into their scale."""
    precision = Precision.parse(precision)
    for layer in module.modules():
        if isinstance(layer, BinaryLayer):
            layer.move_to(precision)


class BinaryLayer(nn.Module):
    """A layer with latent real weights and a learned scale per output channel.

    The weight's first dimension is the output channel; with N experts they lie one after another, N * out rows.
    """

    weight: nn.Parameter
    scale: nn.Parameter
    precision: Precision

    @property
    def filters(self) -> Tensor:
        """The latent weights of all output channels."""
        return self.weight

    def move_to(self, precision: Precision) -> None:
        """Change precision."""
        if precision.binary_weights and not self.precision.binary_weights:
            self._becomes_binary()
        self.precision = precision

    def _becomes_binary(self) -> None:
        """When the weights become signs, their mean size moves into the scale.

        sign(w) has size 1 where w had size mean(abs(w)), and no normalisation follows the layer, so without this the
        network would start Stage II from outputs many times too large.
        """
        rows = self.filters.detach().flatten(1).abs().mean(1)
        self.scale.data.mul_(rows.view(-1, self.scale.numel()).mean(0))
