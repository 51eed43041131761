"""A network's structure as data, without torch: what torch modules are built from and the cost is counted on."""

from dataclasses import dataclass

from ebnet.arch import Arch
from ebnet.models.cell_layout import CellLayout, cell_stages
from ebnet.models.config import TWO_MAPS, NetworkConfig
from ebnet.models.genotype import CellArch
from ebnet.models.layer_layout import ConvLayout, UnitLayout
from ebnet.models.quantizers import UNITS
from ebnet.names import layer_name


@dataclass(frozen=True)
class BlockLayout:
    """A block's units, of each of its branches; mostly there is one."""

    branches: tuple[tuple[UnitLayout, ...], ...]


@dataclass(frozen=True)
class NetworkLayout:
    stem: dict[str, ConvLayout]
    stages: tuple[tuple[BlockLayout | CellLayout, ...], ...]
    features: int
    """Channels before the head."""

    @property
    def units(self) -> tuple[UnitLayout, ...]:
        """All binary convolutions with their skips, in forward order."""
        return tuple(unit for stage in self.stages for block in stage for units in block.branches for unit in units)


def layout(config: NetworkConfig) -> NetworkLayout:
    """The structure that `config` names."""
    arch = config.arch
    stem, shrink = _stem(config)
    if isinstance(arch, CellArch):
        cells = cell_stages(arch, config.stem_width, config.stem in TWO_MAPS, shrink)
        return NetworkLayout(stem, cells, arch.widths[-1])
    return NetworkLayout(stem, _block_stages(config, arch, shrink), arch.widths[-1])


def _block_stages(config: NetworkConfig, arch: Arch, shrink: tuple[int, ...]) -> tuple[tuple[BlockLayout, ...], ...]:
    stages = []
    inputs = (config.stem_width, *arch.widths[:-1])
    for stage, (cin, cout, blocks) in enumerate(zip(inputs, arch.widths, arch.blocks, strict=True)):
        stride = 1 if stage == 0 else 2
        shrink = (*shrink, stride) if stride > 1 else shrink
        widths = [cin] + [cout] * (blocks - 1)
        strides = [stride] + [1] * (blocks - 1)
        stages.append(
            tuple(
                _block(config, arch, stage, number, width, step, shrink)
                for number, (width, step) in enumerate(zip(widths, strides, strict=True))
            )
        )
    return tuple(stages)


def _stem(config: NetworkConfig) -> tuple[dict[str, ConvLayout], tuple[int, ...]]:
    """The stem's convolutions by name, and the strides it leaves behind."""

    def conv(name: str, cin: int, cout: int, kernel: int, stride: int, *shrink: int) -> ConvLayout:
        return ConvLayout(f"stem.{name}", cin, cout, kernel, stride, 1, shrink)

    cin, cout = config.in_channels, config.stem_width
    if config.stem == "imagenet":
        half = cout // 2
        convs: tuple[ConvLayout, ...] = (
            conv("conv1", cin, half, 3, 2, 2),
            conv("squeeze", half, half // 2, 1, 1, 2),
            conv("conv2", half // 2, half, 3, 2, 2, 2),
            conv("mix", cout, cout, 1, 1, 2, 2),
        )
        shrink: tuple[int, ...] = (2, 2)
    elif config.stem == "conv3x3":
        convs = (conv("conv1", cin, cout // 2, 3, 2, 2), conv("conv2", cout // 2, cout, 3, 2, 2, 2))
        convs += (conv("conv3", cout, cout, 3, 2, 2, 2, 2),)
        shrink = (2, 2, 2)
    elif config.stem == "conv7x7":
        convs, shrink = (conv("conv", cin, cout, 7, 2, 2),), (2, 2)
    else:
        convs, shrink = (conv("conv", cin, cout, 3, 1),), ()
    return {c.name.removeprefix("stem."): c for c in convs}, shrink


def _block(
    config: NetworkConfig, arch: Arch, stage: int, block: int, cin: int, stride: int, shrink: tuple[int, ...]
) -> BlockLayout:
    """Two grouped 3x3 convolutions and, where groups must be mixed, an ungrouped 1x1 (section 4.3)."""
    cout, groups = arch.widths[stage], arch.groups[stage]
    shapes = [(cin, 3, stride, groups), (cout, 3, 1, groups)]
    if config.aggregation and groups > 1:
        shapes.append((cout, 1, 1, 1))
    branches = (_branch(config, stage, block, branch, shapes, cin, stride, shrink) for branch in range(config.branches))
    return BlockLayout(tuple(branches))


def _branch(
    config: NetworkConfig,
    stage: int,
    block: int,
    branch: int,
    shapes: list[tuple[int, int, int, int]],
    cin: int,
    stride: int,
    shrink: tuple[int, ...],
) -> tuple[UnitLayout, ...]:
    cout = shapes[-1][0]  # the last unit reads as many channels as all of them give
    units = []
    once = UNITS[config.unit].skip == "block"
    for number, (inputs, kernel, step, split) in enumerate(shapes):
        unit = layer_name(stage, block, number, branch)
        conv = ConvLayout(unit, inputs, cout, kernel, step, split, shrink)
        skips = not once or number == len(shapes) - 1
        source, pooled = (cin, stride) if once else (inputs, step)
        projects = skips and (pooled > 1 or source != cout)
        projection = _projection(config, unit, source, cout, shrink) if projects else ()
        units.append(UnitLayout(conv, skips, projection, pooled, beside=once))
    return tuple(units)


def _projection(
    config: NetworkConfig, unit: str, cin: int, cout: int, shrink: tuple[int, ...]
) -> tuple[ConvLayout, ...]:
    """The real 1x1 convolutions of a skip that changes shape; they run after its average pool."""

    def conv(name: str, cin: int, cout: int) -> ConvLayout:
        return ConvLayout(f"{unit}.shortcut.{name}", cin, cout, 1, 1, 1, shrink)

    if config.shortcut == "none":
        return (conv("conv1", cin, cout),)
    narrow = max(1, cin // config.shortcut_reduction)
    return conv("conv1", cin, narrow), conv("conv2", narrow, cout)
