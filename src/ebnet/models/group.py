"""Blocks of several binary branches (Group-Net, Zhuang et al., CVPR 2019: structured binary neural networks)."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from ebnet.models.block import Block
from ebnet.models.config import NetworkConfig
from ebnet.models.layout import BlockLayout
from ebnet.nn.precision import Precision


class Grouped(NamedTuple):
    """What a block of branches makes: each branch's map, and their sum."""

    branches: list[Tensor]
    fused: Tensor


class GroupBlock(nn.Module):
    """K binary blocks side by side that stand for one real block: F(x) ~ sum_i lambda_i G_i(x), group-wise.

    How far branches go on by themselves is learned (its soft connections): with y_j the maps of the block before,

        x_i = c y_i + (1 - c) sum_j lambda_j y_j,    c = sigmoid(theta),

    one theta for each block, as in the authors' code. The first block has no maps of branches to read. Every branch has
    a shortcut of its own where shapes change; the authors' branches share one.

    Attributes:
        scale: lambda, [K]; begins as the mean.
        gate: theta, of every block but the first; begins half open.
    """

    def __init__(self, layout: BlockLayout, config: NetworkConfig, precision: Precision, first: bool) -> None:
        super().__init__()
        self.branches = nn.ModuleList(Block(units, config, precision) for units in layout.branches)
        self.scale = nn.Parameter(torch.full((config.branches,), 1 / config.branches))
        self.gate = None if first else nn.Parameter(torch.zeros(()))

    def forward(self, before: Tensor | Grouped) -> Grouped:
        maps = [branch(x) for branch, x in zip(self.branches, self._inputs(before), strict=True)]
        fused = self.scale[0] * maps[0]
        for factor, made in zip(self.scale[1:], maps[1:], strict=True):
            fused = fused + factor * made
        return Grouped(maps, fused)

    def _inputs(self, before: Tensor | Grouped) -> list[Tensor]:
        if isinstance(before, Tensor):
            return [before] * len(self.branches)
        assert self.gate is not None
        own = torch.sigmoid(self.gate)
        return [own * made + (1 - own) * before.fused for made in before.branches]
