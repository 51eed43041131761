"""A network of cells as data, without torch: what `ebnet.models.layout` is for residual blocks."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from ebnet.models.genotype import CellArch
from ebnet.models.layer_layout import ConvLayout, UnitLayout
from ebnet.names import layer_name

Value = TypeVar("Value")

DILATIONS = {"conv3x3": 1, "dilated3x3": 2}


@dataclass(frozen=True)
class CellLayout:
    """One cell: its units, and how they and its pools are wired.

    Attributes:
        units: the two that bring the cells before to its width, then those of the nodes, in forward order.
        nodes: for each node the states that are pooled, and those that are convolved, by a unit each.
        stride: 2 where it reduces.
        skips: whether the map of the cell before is added to what it gives; not to what the network's first does.
        projection: the real convolution of a skip that reduces.
    """

    units: tuple[UnitLayout, ...]
    nodes: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    stride: int
    skips: bool
    projection: ConvLayout | None

    @property
    def branches(self) -> tuple[tuple[UnitLayout, ...], ...]:
        """As a `BlockLayout` has them."""
        return (self.units,)

    @property
    def sums(self) -> int:
        """Sums of pooled maps; a unit adds what stands before it in its node by itself."""
        return sum(max(0, len(pooled) - 1) for pooled, _ in self.nodes)

    def run(
        self,
        before: tuple[Value, Value],
        unit: Callable[[int, Value, Value | None], Value],
        pool: Callable[[Value], Value],
        add: Callable[[Value, Value], Value],
    ) -> list[Value]:
        """The nodes' maps from those of the two cells before, whatever stands for a map: a tensor, an op's number.

        Args:
            unit: what unit number i makes of a map; to the result it adds the second, where there is one.
        """
        states = [unit(number, x, None) for number, x in enumerate(before)]
        pools: dict[int, Value] = {}
        used = len(before)
        for pooled, convolved in self.nodes:
            node: Value | None = None
            for source in pooled:
                if source not in pools:
                    pools[source] = pool(states[source])
                node = pools[source] if node is None else add(node, pools[source])
            for source in convolved:
                node = unit(used, states[source], node)
                used += 1
            assert node is not None
            states.append(node)
        return states[len(before) :]


def cell_stages(
    arch: CellArch, stem_width: int, two_maps: bool, shrink: tuple[int, ...]
) -> tuple[tuple[CellLayout, ...], ...]:
    """The cells behind a stem; `two_maps`: beside its last map the first cell reads one of twice the size."""
    stages = []
    inputs = (stem_width, stem_width)
    halved = two_maps
    for stage, (cells, width) in enumerate(zip(arch.blocks, arch.widths, strict=True)):
        made = []
        for number in range(cells):
            made.append(_cell(arch, stage, number, inputs, halved, shrink))
            halved = made[-1].stride > 1
            shrink = (*shrink, 2) if halved else shrink
            inputs = (inputs[1], width)
        stages.append(tuple(made))
    return tuple(stages)


def _cell(
    arch: CellArch, stage: int, number: int, inputs: tuple[int, int], halved: bool, shrink: tuple[int, ...]
) -> CellLayout:
    """A cell that reads maps of `inputs` channels; `halved`: the newer one is half as large as the older."""
    width = arch.channels * 2**stage
    reduces = stage > 0 and number == 0
    after = (*shrink, 2) if reduces else shrink
    units: list[UnitLayout] = []

    def add(cin: int, kernel: int, stride: int, shrink: tuple[int, ...], dilation: int = 1, adds: bool = False) -> None:
        conv = ConvLayout(layer_name(stage, number, len(units)), cin, width, kernel, stride, 1, shrink, dilation)
        units.append(UnitLayout(conv, adds, (), stride, beside=True))

    add(inputs[0], *((3, 2) if halved else (1, 1)), shrink)
    add(inputs[1], 1, 1, shrink)
    nodes = []
    for edges in arch.found.reduction if reduces else arch.found.normal:
        pooled = [source for operation, source in edges if operation not in DILATIONS]
        convolved: list[int] = []
        for operation, source in edges:
            if operation in DILATIONS:
                stride = 2 if reduces and source < len(inputs) else 1
                add(width, 3, stride, after, DILATIONS[operation], adds=bool(pooled or convolved))
                convolved.append(source)
        nodes.append((tuple(pooled), tuple(convolved)))
    shortcut = ConvLayout(f"{stage}.{number}.shortcut", inputs[1], arch.widths[stage], 2, 2, 1, after)
    skips = stage > 0 or number > 0
    return CellLayout(tuple(units), tuple(nodes), 2 if reduces else 1, skips, shortcut if reduces else None)
