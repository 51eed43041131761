"""Counting operations and bytes, per layer and in total, for one picture.

How things are counted (docs/counting.md has the derivation):

- BOPs: multiply-accumulates whose operands are both binary. Experts do not change them, one is used at a time.
- real MACs: stem, shortcut projections, gates, data-driven scaling, head and classifier.
- elementwise: 5 operations per output element of a binary convolution (batch norm 2, scale, PReLU, add), one more
  with data-driven scaling, and 3 per output element of a stem convolution (batch norm 2, ReLU). Units of other papers
  have more or fewer of them.
- Weights of m bits with activations of n are m n BOPs a multiply-accumulate; with real activations it is a real MAC.
- FLOPs = real MACs + elementwise, which is what the paper's 1.1e8 counts. OPs = BOPs / 64 + FLOPs.
- Branches of a block are all counted, and the sums that join them are real MACs. An ensemble is all of its members.
- In a cell a node's second convolution adds its first, as a skip; other sums are counted beside. Pools are not.
- bytes: one bit per binary weight and expert, 4 or 2 bytes per real; a batch norm is two reals per channel, as stored.
  In an int8 file the weights of stem, shortcuts, head and classifier are bytes, the last two with a scale per output;
  small layers stay real (`ebnet.models.small_layers`).
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from ebnet.arch import SCALING_REDUCTION, Arch
from ebnet.errors import ConfigError
from ebnet.models.cell_layout import CellLayout
from ebnet.models.config import NetworkConfig
from ebnet.models.genotype import CellArch, parse_arch
from ebnet.models.layer_layout import ConvLayout, UnitLayout
from ebnet.models.layout import BlockLayout, NetworkLayout, layout
from ebnet.models.quantizers import ACTIVATION_BITS, REAL_BITS, UNITS, WEIGHT_BITS
from ebnet.models.small_layers import worth_int8
from ebnet.names import member_prefix

if TYPE_CHECKING:
    from ebnet.models.network import ExpertBinaryNetwork

STEM_ELEMENTWISE = 3
Kind = Literal["stem", "binary", "shortcut", "fusion", "head", "classifier"]


@dataclass(frozen=True)
class LayerCost:
    """One layer: what it does and what it holds."""

    name: str
    kind: Kind
    output: tuple[int, ...]
    bops: int = 0
    real_macs: int = 0
    elementwise: int = 0
    binary_weights: int = 0
    """Of one expert; a weight of two bits counts twice."""
    real_parameters: int = 0
    real_weights: int = 0
    """Of a convolution or linear map: those parameters that an int8 file may keep as bytes."""

    @property
    def bytes_saved(self) -> int:
        """By int8 against fp16."""
        if not worth_int8(self.real_weights, self.real_macs):
            return 0
        return self.real_weights - (2 * self.output[0] if self.kind in ("head", "classifier") else 0)


@dataclass(frozen=True)
class Profile:
    """The cost of a network at one input size; totals are sums over `layers`."""

    config: NetworkConfig
    input_size: tuple[int, int]
    layers: tuple[LayerCost, ...]

    @property
    def bops(self) -> int:
        return sum(layer.bops for layer in self.layers)

    @property
    def real_macs(self) -> int:
        return sum(layer.real_macs for layer in self.layers)

    @property
    def elementwise(self) -> int:
        return sum(layer.elementwise for layer in self.layers)

    @property
    def flops(self) -> int:
        return self.real_macs + self.elementwise

    @property
    def ops(self) -> float:
        return self.bops / 64 + self.flops

    @property
    def binary_weights(self) -> int:
        return sum(layer.binary_weights for layer in self.layers)

    @property
    def real_parameters(self) -> int:
        return sum(layer.real_parameters for layer in self.layers)

    @property
    def bytes_fp32(self) -> int:
        return self._bytes(4)

    @property
    def bytes_fp16(self) -> int:
        return self._bytes(2)

    @property
    def bytes_int8(self) -> int:
        return self._bytes(2) - sum(layer.bytes_saved for layer in self.layers)

    def _bytes(self, real: int) -> int:
        return -(-self.binary_weights * self.config.experts // 8) + real * self.real_parameters

    def to_dict(self) -> dict[str, Any]:
        return {
            "arch": str(self.config.arch),
            "experts": self.config.experts,
            "input_size": list(self.input_size),
            "bops": self.bops,
            "real_macs": self.real_macs,
            "elementwise": self.elementwise,
            "flops": self.flops,
            "ops": self.ops,
            "binary_weights": self.binary_weights,
            "real_parameters": self.real_parameters,
            "bytes_fp32": self.bytes_fp32,
            "bytes_fp16": self.bytes_fp16,
            "bytes_int8": self.bytes_int8,
            "network": self.config.to_dict(),
            "layers": [asdict(layer) | {"output": list(layer.output)} for layer in self.layers],
        }


def profile(
    network: "ExpertBinaryNetwork | NetworkConfig | Arch | CellArch | str", input_size: int | tuple[int, int] = 224
) -> Profile:
    """Count a network: a model, its configuration, an `Arch` or a notation."""
    config = network if isinstance(network, NetworkConfig) else getattr(network, "config", None)
    if config is None:
        config = NetworkConfig(parse_arch(network))  # type: ignore[arg-type]
    size = (input_size, input_size) if isinstance(input_size, int) else tuple(input_size)
    if len(size) != 2 or min(size) < 1:
        raise ConfigError(f"input_size={input_size!r}: expected one or two whole numbers of at least 1")
    structure = layout(config)
    layers = (*_stem(structure, size), *_units(config, structure, size), *_classifier(config, structure))
    members = (
        replace(layer, name=member_prefix(member) + layer.name) for member in range(config.members) for layer in layers
    )
    return Profile(config, size, tuple(members))


def _stem(structure: NetworkLayout, size: tuple[int, int]) -> Iterator[LayerCost]:
    for conv in structure.stem.values():
        yield _real(conv, "stem", size, reals_per_channel=2, elementwise=STEM_ELEMENTWISE)


def _units(config: NetworkConfig, structure: NetworkLayout, size: tuple[int, int]) -> Iterator[LayerCost]:
    for number, block in enumerate(block for stage in structure.stages for block in stage):
        for unit in (unit for units in block.branches for unit in units):
            yield _binary(config, unit, size)
            yield from _projection(config, unit, size)
        if isinstance(block, CellLayout):
            yield from _joined(block, size)
        elif config.branches > 1:
            yield _fusion(config, block, size, first=number == 0)


def _fusion(config: NetworkConfig, block: BlockLayout, size: tuple[int, int], first: bool) -> LayerCost:
    """Of a block's branches: their weighted sum, and before it what each of them reads, a sum of two maps."""
    start, last = block.branches[0][0], block.branches[0][-1].conv
    output, positions = _output(last, size)
    read = start.conv.cin * positions * start.stride**2
    macs = config.branches * (last.cout * positions + (0 if first else 2 * read))
    reals = config.branches + (not first)
    return LayerCost(f"{last.name}.fusion", "fusion", output, real_macs=macs, real_parameters=reals)


def _joined(cell: CellLayout, size: tuple[int, int]) -> Iterator[LayerCost]:
    """Of a cell: the real convolution of its skip, and the sums that no unit makes, of pools and with the skip."""
    if cell.projection is not None:
        yield _real(cell.projection, "shortcut", size, reals_per_channel=2)
    last = cell.units[-1].conv
    (width, *side), positions = _output(last, size)
    channels = width * len(cell.nodes)
    sums = width * cell.sums + channels * cell.skips
    if sums:
        place = last.name.rpartition(".")[0]
        yield LayerCost(f"{place}.sums", "fusion", (channels, *side), elementwise=sums * positions)


def _binary(config: NetworkConfig, unit: UnitLayout, size: tuple[int, int]) -> LayerCost:
    conv = unit.conv
    output, positions = _output(conv, size)
    kind, bits = UNITS[config.unit], WEIGHT_BITS[config.weights]
    activation_bits = ACTIVATION_BITS[config.activations]
    scales = config.weights != "sign"
    # Batch norm on the input or the output; scale, activation and thresholds.
    macs, reals = 0, 2 * (conv.cin if kind.norm_first else conv.cout) + (scales + kind.slopes) * conv.cout
    reals += conv.cin if config.activations == "rsign" else 0
    elementwise = 2 + scales + kind.operations + unit.skips + config.scaling
    work = conv.weights * positions
    bops = 0 if activation_bits == REAL_BITS else bits * activation_bits * work
    macs += work if activation_bits == REAL_BITS else 0
    if config.experts > 1 or config.conv == "cond":
        macs += config.experts * conv.cin
        reals += config.experts * (conv.cin + 1)
    if config.conv == "cond":
        macs += config.experts * conv.weights  # mixing the experts
    if config.scaling:
        hidden = max(1, conv.cout // SCALING_REDUCTION)
        macs += hidden * (conv.cin + conv.cout)
        reals += hidden * (conv.cin + conv.cout)
    return LayerCost(
        conv.name,
        "binary",
        output,
        bops=bops,
        real_macs=macs,
        elementwise=elementwise * conv.cout * positions,
        binary_weights=bits * conv.weights,
        real_parameters=reals,
    )


def _projection(config: NetworkConfig, unit: UnitLayout, size: tuple[int, int]) -> Iterator[LayerCost]:
    slopes = 1 if config.shortcut == "prelu" else 0
    for conv in unit.projection:
        yield _real(conv, "shortcut", size, reals_per_channel=2 + slopes)


def _real(
    conv: ConvLayout, kind: Kind, size: tuple[int, int], reals_per_channel: int, elementwise: int = 0
) -> LayerCost:
    output, positions = _output(conv, size)
    return LayerCost(
        conv.name,
        kind,
        output,
        real_macs=conv.weights * positions,
        elementwise=elementwise * conv.cout * positions,
        real_parameters=conv.weights + reals_per_channel * conv.cout,
        real_weights=conv.weights,
    )


def _classifier(config: NetworkConfig, structure: NetworkLayout) -> Iterator[LayerCost]:
    features = structure.features
    if config.head_width is not None:
        weights = features * config.head_width
        reals = weights + 2 * config.head_width  # bias and PReLU
        yield LayerCost("head", "head", (config.head_width,), 0, weights, 0, 0, reals, weights)
        features = config.head_width
    weights = features * config.num_classes
    reals = weights + config.num_classes
    yield LayerCost("classifier", "classifier", (config.num_classes,), 0, weights, 0, 0, reals, weights)


def _output(conv: ConvLayout, size: tuple[int, int]) -> tuple[tuple[int, int, int], int]:
    height, width = conv.output(*size)
    return (conv.cout, height, width), height * width
