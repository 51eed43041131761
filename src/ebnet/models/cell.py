"""Cells of binary convolutions (BNAS, Kim et al., ECCV 2020; what a cell is, is in `ebnet.models.genotype`)."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from ebnet.errors import ShapeError
from ebnet.models.block import BinaryUnit
from ebnet.models.cell_layout import CellLayout
from ebnet.models.config import NetworkConfig
from ebnet.models.layer_layout import ConvLayout
from ebnet.nn.precision import Precision


class Pair(NamedTuple):
    """What a cell reads: the maps of the last two cells, or of the stem."""

    older: Tensor
    newer: Tensor


class Cell(nn.Module):
    """A normal cell or a reduction cell.

    Its output is joined from its nodes, plus the map of the cell before (the paper's inter-cell skip connection, which
    carries a gradient past all binary convolutions). A reduction cell brings that map to its shape by a real
    convolution; the first cell has no such skip. Its units go one after another in forward order.
    """

    def __init__(self, layout: CellLayout, config: NetworkConfig, precision: Precision) -> None:
        super().__init__()
        self.layout = layout
        self.units = nn.ModuleList(BinaryUnit(unit, config, precision) for unit in layout.units)
        self.pool = nn.MaxPool2d(3, layout.stride, 1)
        self.shortcut: nn.Module | None = nn.Identity() if layout.skips else None
        if layout.projection is not None:
            self.shortcut = Halving(layout.projection)

    def forward(self, before: Tensor | Pair) -> Pair:
        pair = before if isinstance(before, Pair) else Pair(before, before)
        nodes = self.layout.run(
            (pair.older, pair.newer),
            unit=lambda number, x, beside: self.units[number](x, beside),
            pool=self.pool,
            add=torch.add,
        )
        joined = torch.cat(nodes, 1)
        return Pair(pair.newer, joined if self.shortcut is None else joined + self.shortcut(pair.newer))


class Halving(nn.Module):
    """Batch norm and a real 2x2 convolution of stride 2: the skip around a reduction cell."""

    def __init__(self, layout: ConvLayout) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(layout.cin)
        self.conv = nn.Conv2d(layout.cin, layout.cout, layout.kernel, layout.stride)

    def forward(self, x: Tensor) -> Tensor:
        height, width = x.shape[2:]
        if height % 2 or width % 2:
            raise ShapeError(
                f"a reduction cell cannot halve a map of {height}x{width}: use images whose sides all strides divide, "
                "multiples of 4 with stem='cifar', of 32 with 'conv3x3', of 16 with the others"
            )
        return self.conv(self.norm(x))
