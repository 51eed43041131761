"""The residual block and its units: binary convolutions with what stands before and after them."""

from typing import Any

from torch import Tensor, nn

from ebnet.models.config import NetworkConfig
from ebnet.models.layer_layout import ConvLayout, UnitLayout
from ebnet.models.quantizers import UNITS
from ebnet.models.shortcut import ACTIVATIONS, Projection
from ebnet.nn.binary_conv import BinaryConv2d
from ebnet.nn.cond_conv import CondBinaryConv2d
from ebnet.nn.expert_conv import ExpertBinaryConv2d
from ebnet.nn.precision import Precision
from ebnet.nn.rprelu import RPReLU
from ebnet.nn.unit import binary_unit, refusal

BLOCK_NORM_EPS = 1e-4
"""Epsilon of the batch norm before a binary convolution, the released networks' value."""


class BinaryUnit(nn.Module):
    """A binary convolution with its batch norm, activation and skip, in the order of its `UnitKind`.

    BN -> binary conv -> PReLU, plus the skip, is on the CPU one native operation, up to a ReLU in the PReLU's place;
    other orders go layer by layer.

    Attributes:
        beside: whether the skip reads the second map that `forward` takes, not the first.
        refusal: why the last forward pass went layer by layer; None where it did not.
    """

    def __init__(self, layout: UnitLayout, config: NetworkConfig, precision: Precision) -> None:
        super().__init__()
        self.kind = UNITS[config.unit]
        channels = layout.conv.cin if self.kind.norm_first else layout.conv.cout
        self.norm = nn.BatchNorm2d(channels, eps=BLOCK_NORM_EPS)
        self.conv = _binary_conv(layout.conv, config, precision)
        self.act = (ACTIVATIONS | {"rprelu": RPReLU})[self.kind.activation](layout.conv.cout)
        self.beside = layout.beside
        self.shortcut: nn.Module | None = nn.Identity() if layout.skips else None
        if layout.projection:
            self.shortcut = Projection(layout.projection, layout.stride, config.shortcut)
        self.refusal: str | None = None

    def forward(self, x: Tensor, beside: Tensor | None) -> Tensor:
        skip = None if self.shortcut is None else self.shortcut(beside if self.beside else x)
        self.refusal = self._refusal(x)
        if self.refusal is None:
            return self._native(x, skip)
        y = self.conv(self.norm(x)) if self.kind.norm_first else self.norm(self.conv(x))
        if self.kind.activation_last:
            return self.act(y if skip is None else y + skip)
        return self.act(y) if skip is None else self.act(y) + skip

    def _refusal(self, x: Tensor) -> str | None:
        if type(self.conv) is not ExpertBinaryConv2d:
            return type(self.conv).__name__
        if not self.kind.norm_first or self.kind.activation_last:
            return "another order of layers"
        return refusal(x, self.norm, self.conv, self._native_act)

    @property
    def _native_act(self) -> nn.Module | None:
        return None if isinstance(self.act, nn.Identity | nn.ReLU) else self.act

    def _native(self, x: Tensor, skip: Tensor | None) -> Tensor:
        assert isinstance(self.conv, ExpertBinaryConv2d)
        act = self._native_act
        assert act is None or isinstance(act, nn.PReLU)
        if isinstance(self.act, nn.ReLU):
            y = self.act(binary_unit(x, None, self.norm, self.conv, None))
            return y if skip is None else y + skip
        return binary_unit(x, skip, self.norm, self.conv, act)


class Block(nn.Module):
    """Two grouped 3x3 units and, where groups are to be mixed, one ungrouped 1x1 unit."""

    def __init__(self, units: tuple[UnitLayout, ...], config: NetworkConfig, precision: Precision) -> None:
        super().__init__()
        self.units = nn.ModuleList(BinaryUnit(unit, config, precision) for unit in units)

    def forward(self, x: Tensor) -> Tensor:
        first = x
        for unit in self.units:
            x = unit(x, first)
        return x


def _binary_conv(layout: ConvLayout, config: NetworkConfig, precision: Precision) -> BinaryConv2d:
    shape = (layout.cin, layout.cout, layout.kernel, layout.stride, layout.padding, layout.dilation, layout.groups)
    common: dict[str, Any] = {
        "num_experts": config.experts,
        "scaling": config.scaling,
        "precision": precision,
        "activations": config.activations,
    }
    if config.conv == "cond":
        return CondBinaryConv2d(*shape, outer_ste=config.cond_outer_ste, **common)
    common |= {"gate": config.gate, "temperature": config.temperature, "weights": config.weights}
    common |= {"orientations": config.orientations}
    return ExpertBinaryConv2d(*shape, **common)
