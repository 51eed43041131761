"""A network's structure as data, without torch: what the torch modules are built from and what the cost is counted on.

Sizes: every strided layer here (3x3 pad 1, 7x7 pad 3, 1x1, 3x3 max pool pad 1, average pool in ceil mode) maps a side
of n to ceil(n / stride), so a map's size follows from the strides alone.
"""

from dataclasses import dataclass

from ebnet.models.config import NetworkConfig
from ebnet.models.quantizers import UNITS
from ebnet.names import layer_name


@dataclass(frozen=True)
class ConvLayout:
    """A convolution with padding kernel // 2. `shrink` is how much smaller its output is than the network's input."""

    name: str
    cin: int
    cout: int
    kernel: int
    stride: int
    groups: int
    shrink: tuple[int, ...]

    def output(self, height: int, width: int) -> tuple[int, int]:
        """The output map's size for a network input of height x width."""
        for stride in self.shrink:
            height, width = -(-height // stride), -(-width // stride)
        return height, width

    @property
    def weights(self) -> int:
        return self.cout * (self.cin // self.groups) * self.kernel**2


@dataclass(frozen=True)
class UnitLayout:
    """A binary convolution with its batch norm and activation, and where there is one a skip.

    The skip is the identity or, with a `projection`, its real convolutions after an average pool of `stride`.
    """

    conv: ConvLayout
    skips: bool
    projection: tuple[ConvLayout, ...]
    stride: int


@dataclass(frozen=True)
class BlockLayout:
    """A block's units, of each of its branches; mostly there is one."""

    branches: tuple[tuple[UnitLayout, ...], ...]


@dataclass(frozen=True)
class NetworkLayout:
    stem: dict[str, ConvLayout]
    stages: tuple[tuple[BlockLayout, ...], ...]
    features: int
    """Channels before the head."""

    @property
    def units(self) -> tuple[UnitLayout, ...]:
        """All binary convolutions with their skips, in forward order."""
        return tuple(unit for stage in self.stages for block in stage for units in block.branches for unit in units)


def layout(config: NetworkConfig) -> NetworkLayout:
    """The structure that `config` names."""
    stem, shrink = _stem(config)
    stages = []
    inputs = (config.stem_width, *config.arch.widths[:-1])
    for stage, (cin, cout, blocks) in enumerate(zip(inputs, config.arch.widths, config.arch.blocks, strict=True)):
        stride = 1 if stage == 0 else 2
        shrink = (*shrink, stride) if stride > 1 else shrink
        widths = [cin] + [cout] * (blocks - 1)
        strides = [stride] + [1] * (blocks - 1)
        stages.append(
            tuple(
                _block(config, stage, number, width, step, shrink)
                for number, (width, step) in enumerate(zip(widths, strides, strict=True))
            )
        )
    return NetworkLayout(stem, tuple(stages), config.arch.widths[-1])


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
    elif config.stem == "conv7x7":
        convs, shrink = (conv("conv", cin, cout, 7, 2, 2),), (2, 2)
    else:
        convs, shrink = (conv("conv", cin, cout, 3, 1),), ()
    return {c.name.removeprefix("stem."): c for c in convs}, shrink


def _block(
    config: NetworkConfig, stage: int, block: int, cin: int, stride: int, shrink: tuple[int, ...]
) -> BlockLayout:
    """Two grouped 3x3 convolutions and, where groups must be mixed, an ungrouped 1x1 (section 4.3)."""
    cout, groups = config.arch.widths[stage], config.arch.groups[stage]
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
    cout = config.arch.widths[stage]
    units = []
    once = UNITS[config.unit].skip == "block"
    for number, (inputs, kernel, step, split) in enumerate(shapes):
        unit = layer_name(stage, block, number, branch)
        conv = ConvLayout(unit, inputs, cout, kernel, step, split, shrink)
        skips = not once or number == len(shapes) - 1
        source, pooled = (cin, stride) if once else (inputs, step)
        projects = skips and (pooled > 1 or source != cout)
        projection = _projection(config, unit, source, cout, shrink) if projects else ()
        units.append(UnitLayout(conv, skips, projection, pooled))
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
