"""Cells that others found by search, as data, and the networks made of them by name: ``bnas-15x68``.

A cell (Zoph et al., 2018; DARTS, Liu et al., 2019) reads the two cells before it, as states 0 and 1. Each of its nodes
is the sum of two operations on earlier states and becomes the next state; the nodes' maps, one after another, are what
the cell gives. Normal cells keep the map's size, reduction cells halve it. The notation N0N1N2N3-E-G has no place for
that, so a network of cells has its own: the genotype, how many cells, and the channels of a node of the first ones.
"""

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, Self

from ebnet.arch import LONGEST_NUMBER, Arch
from ebnet.errors import ArchError

Operation = Literal["conv3x3", "dilated3x3", "maxpool3x3"]
"""Binary convolutions, the second of dilation 2, and a max pool."""
Edge = tuple[Operation, int]
"""An operation and the state that it reads."""

STAGES = 3
"""Of normal cells; the first cell of the second and the third stage reduces."""


@dataclass(frozen=True)
class Genotype:
    """The nodes of both kinds of cell; all of them are joined to the cell's output."""

    normal: tuple[tuple[Edge, Edge], ...]
    reduction: tuple[tuple[Edge, Edge], ...]


GENOTYPES = {
    "bnas": Genotype(
        normal=(
            (("conv3x3", 1), ("dilated3x3", 0)),
            (("conv3x3", 1), ("conv3x3", 2)),
            (("conv3x3", 2), ("dilated3x3", 1)),
            (("dilated3x3", 1), ("conv3x3", 0)),
        ),
        reduction=(
            (("maxpool3x3", 0), ("maxpool3x3", 1)),
            (("maxpool3x3", 0), ("conv3x3", 2)),
            (("maxpool3x3", 0), ("dilated3x3", 3)),
            (("maxpool3x3", 0), ("dilated3x3", 4)),
        ),
    )
}
"""bnas: Kim et al., Learning Architectures for Binary Networks (ECCV 2020), the cells of its ImageNet networks as its
authors' code has them."""


@dataclass(frozen=True)
class CellArch:
    """A network of cells, as `Arch` is one of residual blocks.

    Examples:
        >>> arch = CellArch.parse("bnas-15x68")
        >>> arch.blocks, arch.widths
        ((5, 5, 5), (272, 544, 1088))
    """

    genotype: str
    cells: int
    channels: int

    def __post_init__(self) -> None:
        if self.genotype not in GENOTYPES:
            raise ArchError(f"{self}: no cells are called {self.genotype!r}; known are {', '.join(GENOTYPES)}")
        if self.cells < STAGES:
            raise ArchError(f"{self}: {self.cells} cells; each of {STAGES} stages needs at least one")
        if self.channels < 1:
            raise ArchError(f"{self}: a node needs at least 1 channel")

    @classmethod
    def parse(cls, text: str) -> Self:
        number = rf"(\d{{1,{LONGEST_NUMBER}}})"
        found = re.fullmatch(rf"([a-z]+)-{number}x{number}", text, re.ASCII)
        if found is None:
            raise ArchError(
                f"{text!r} is no network of cells; those are named like bnas-15x68 (genotype-cells x channels)"
            )
        genotype, cells, channels = found.groups()
        return cls(genotype, int(cells), int(channels))

    @property
    def found(self) -> Genotype:
        return GENOTYPES[self.genotype]

    @property
    def blocks(self) -> tuple[int, ...]:
        """Cells of each stage: the first to reduce are those at a third and at two thirds of all."""
        ends = [stage * self.cells // STAGES for stage in range(STAGES + 1)]
        return tuple(end - begin for begin, end in pairwise(ends))

    @property
    def widths(self) -> tuple[int, ...]:
        """Output channels of each stage."""
        return tuple(len(self.found.normal) * self.channels * 2**stage for stage in range(STAGES))

    def __str__(self) -> str:
        return f"{self.genotype}-{self.cells}x{self.channels}"


def parse_arch(text: str | Arch | CellArch) -> Arch | CellArch:
    """A network's structure from its notation: residual blocks, or cells where it begins with the name of some."""
    if isinstance(text, CellArch):
        return text
    if isinstance(text, str) and text.partition("-")[0] in GENOTYPES:
        return CellArch.parse(text)
    return Arch.parse(text)
