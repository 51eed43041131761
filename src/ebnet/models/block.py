"""The residual block: a skip around every binary convolution (Bi-Real Net's double skip), groups mixed at its end."""

from typing import Any

from torch import Tensor, nn

from ebnet.models.config import NetworkConfig
from ebnet.models.layout import BlockLayout, ConvLayout, UnitLayout
from ebnet.models.shortcut import Projection
from ebnet.nn.binary_conv import BinaryConv2d
from ebnet.nn.cond_conv import CondBinaryConv2d
from ebnet.nn.expert_conv import ExpertBinaryConv2d
from ebnet.nn.precision import Precision
from ebnet.nn.unit import binary_unit, refusal

BLOCK_NORM_EPS = 1e-4
"""Epsilon of the batch norm before a binary convolution, the released networks' value."""


class BinaryUnit(nn.Module):
    """BN -> binary conv -> PReLU, plus the skip: on the CPU one native operation, else layer by layer.

    Attributes:
        refusal: why the last forward pass went layer by layer; None where it did not.
    """

    def __init__(self, layout: UnitLayout, config: NetworkConfig, precision: Precision) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(layout.conv.cin, eps=BLOCK_NORM_EPS)
        self.conv = _binary_conv(layout.conv, config, precision)
        self.act = nn.PReLU(layout.conv.cout)
        self.shortcut: nn.Module = nn.Identity()
        if layout.projection:
            self.shortcut = Projection(layout.projection, layout.conv.stride, config.shortcut)
        self.refusal: str | None = None

    def forward(self, x: Tensor) -> Tensor:
        skip = self.shortcut(x)
        if type(self.conv) is not ExpertBinaryConv2d:
            self.refusal = type(self.conv).__name__
        else:
            self.refusal = refusal(x, self.norm, self.conv, self.act)
            if self.refusal is None:
                return binary_unit(x, skip, self.norm, self.conv, self.act)
        return self.act(self.conv(self.norm(x))) + skip


class Block(nn.Module):
    """Two grouped 3x3 units and, where groups are to be mixed, one ungrouped 1x1 unit."""

    def __init__(self, layout: BlockLayout, config: NetworkConfig, precision: Precision) -> None:
        super().__init__()
        self.units = nn.ModuleList(BinaryUnit(unit, config, precision) for unit in layout.units)

    def forward(self, x: Tensor) -> Tensor:
        for unit in self.units:
            x = unit(x)
        return x


def _binary_conv(layout: ConvLayout, config: NetworkConfig, precision: Precision) -> BinaryConv2d:
    shape = (layout.cin, layout.cout, layout.kernel, layout.stride, layout.kernel // 2, 1, layout.groups)
    common: dict[str, Any] = {
        "num_experts": config.experts,
        "scaling": config.scaling,
        "precision": precision,
        "activations": config.activations,
    }
    if config.conv == "cond":
        return CondBinaryConv2d(*shape, outer_ste=config.cond_outer_ste, **common)
    common |= {"gate": config.gate, "temperature": config.temperature, "weights": config.weights}
    return ExpertBinaryConv2d(*shape, **common)
