"""Everything that defines a network, as one validated value that also is its `config.json`."""

from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, Self, get_args

from ebnet.arch import STEM_WIDTH, Arch
from ebnet.errors import ConfigError
from ebnet.models.genotype import CellArch, parse_arch

Stem = Literal["imagenet", "conv7x7", "conv3x3", "cifar"]
Shortcut = Literal["none", "linear", "relu", "prelu"]
GateGradient = Literal["softmax", "sigmoid"]
Conv = Literal["expert", "cond"]
Ste = Literal["clip", "identity"]
Weights = Literal[
    "learned-scale",
    "sign",
    "channel-mean",
    "layer-mean",
    "lq",
    "magnitude",
    "libra",
    "abc-1",
    "abc-5",
    "dsq",
    "syq",
    "ttq",
    "qil",
]
Activations = Literal[
    "sign",
    "sign-polynomial",
    "sign-ede",
    "sign-long-tail",
    "rsign",
    "abc-1",
    "abc-5",
    "hwgq",
    "dorefa",
    "lq",
    "qil",
    "real",
]
Unit = Literal["real-to-binary", "xnor", "xnor-relu", "bi-real", "bi-real-prelu", "react"]

_ESTIMATORS = {"clip": "sign", "polynomial": "sign-polynomial"}
"""What the former setting `activation_ste` is called as `activations`."""


COUNTS = (
    "experts",
    "num_classes",
    "in_channels",
    "stem_width",
    "shortcut_reduction",
    "head_width",
    "orientations",
    "branches",
    "members",
)
"""Settings that are whole numbers of at least 1."""

STEM_MULTIPLES = {"imagenet": 4, "conv3x3": 2}
"""What must divide the width of a stem that splits its channels."""
TWO_MAPS = ("conv3x3",)
"""Stems that give their last two maps."""


@dataclass(frozen=True)
class NetworkConfig:
    """The structure of a network: what `create_model` takes and `config.json` holds.

    Attributes:
        arch: the paper's notation, e.g. ``1262-2-4:8:8:16``, or a network of cells, e.g. ``bnas-15x68``.
        experts: experts per binary convolution (N).
        stem: ``imagenet`` (the cheap one, /4), ``conv7x7`` (ResNet's, /4), ``conv3x3`` (DARTS's, /8, for cells) or
            ``cifar`` (3x3, /1).
        stem_width: channels the stem gives; the paper's 64 would be most of the work of a narrow network.
        shortcut: how the real 1x1 projection is decomposed: ``none`` (one conv), ``linear``, ``relu`` or ``prelu``.
        shortcut_reduction: r of the decomposition Cin -> Cin/r -> Cout.
        aggregation: an ungrouped 1x1 binary convolution after each block of a stage that has groups.
        scaling: data-driven per-channel output scaling (Real-to-Binary).
        head_width: width of an extra real layer between the pooled features and the classifier.
        gate: the gradient of the gate: ``softmax`` (the paper's) or ``sigmoid`` (its ablation).
        temperature: tau of the gate's softmax.
        conv: ``expert`` or ``cond`` (the binarized CondConv baseline).
        weights: how weights are quantized, a name of `ebnet.nn.weights`: ``learned-scale`` (the paper's), ``sign`` ...
        activations: how activations are quantized, a name of `ebnet.nn.activations`: ``sign`` with the clipped
            gradient (the paper's), ``sign-polynomial``, ``rsign`` ...
        unit: the order of the layers around a binary convolution, a name of `ebnet.models.quantizers.UNITS`:
            ``real-to-binary`` (the paper's), ``xnor``, ``xnor-relu``, ``bi-real``, ``bi-real-prelu`` or ``react``.
        orientations: of how many output channels of a binary convolution each is a turned version of one learned filter
            (`ebnet.nn.circulant`): 1, 4 or 8.
        branches: binary blocks side by side in place of each block (`ebnet.models.group`).
        members: of an ensemble: networks of their own whose logits are averaged (`ebnet.train.bagging`).
        cond_outer_ste: estimator of CondConv's second binarization: ``clip`` or ``identity``.
    """

    arch: Arch | CellArch
    experts: int = 1
    num_classes: int = 1000
    in_channels: int = 3
    stem: Stem = "imagenet"
    stem_width: int = STEM_WIDTH
    shortcut: Shortcut = "prelu"
    shortcut_reduction: int = 4
    aggregation: bool = True
    scaling: bool = False
    head_width: int | None = None
    gate: GateGradient = "softmax"
    temperature: float = 1.0
    conv: Conv = "expert"
    weights: Weights = "learned-scale"
    activations: Activations = "sign"
    unit: Unit = "real-to-binary"
    orientations: int = 1
    branches: int = 1
    members: int = 1
    cond_outer_ste: Ste = "clip"

    def __post_init__(self) -> None:
        object.__setattr__(self, "arch", parse_arch(self.arch))
        for name in COUNTS:
            value = getattr(self, name)
            if value is None and name == "head_width":
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ConfigError(f"{name}={value!r}: expected a whole number of at least 1")
        for name in ("aggregation", "scaling"):
            if not isinstance(getattr(self, name), bool):
                raise ConfigError(f"{name}={getattr(self, name)!r}: expected true or false")
        number = isinstance(self.temperature, int | float) and not isinstance(self.temperature, bool)
        if not number or not 0 < self.temperature < float("inf"):
            raise ConfigError(f"temperature={self.temperature!r}: expected a positive number")
        choices: dict[str, Any] = {"stem": Stem, "shortcut": Shortcut, "gate": GateGradient, "conv": Conv}
        choices |= {"weights": Weights, "activations": Activations, "unit": Unit, "cond_outer_ste": Ste}
        for name, kind in choices.items():
            _one_of(name, getattr(self, name), get_args(kind))
        if self.conv == "cond" and self.weights != "learned-scale":
            raise ConfigError(f"weights={self.weights!r}: conv='cond' takes signs of mixed experts, not these")
        _one_of("orientations", self.orientations, (1, 4, 8))
        if self.conv == "cond" and self.orientations > 1:
            raise ConfigError(f"orientations={self.orientations}: conv='cond' mixes filters, and turns none")
        multiple = STEM_MULTIPLES.get(self.stem, 1)
        if self.stem_width % multiple:
            raise ConfigError(f"stem_width={self.stem_width}: the {self.stem} stem needs a multiple of {multiple}")
        if isinstance(self.arch, CellArch):
            if self.branches > 1:
                raise ConfigError(f"branches={self.branches}: {self.arch} is a network of cells, and they have none")
            return
        if self.stem in TWO_MAPS:
            raise ConfigError(f"stem={self.stem!r}: its two maps are for networks of cells, not for {self.arch}")
        if self.stem_width % self.arch.groups[0]:
            raise ConfigError(
                f"stem_width={self.stem_width}: {self.arch.groups[0]} groups of {self.arch} do not divide it"
            )

    def with_experts(self, experts: int) -> Self:
        return replace(self, experts=experts)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; `from_dict` reads them back."""
        return asdict(self) | {"arch": str(self.arch)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        if not isinstance(values, dict):
            raise ConfigError(f"a network's settings are a table of names and values, not {values!r}")
        values = renamed(values)
        known = {field.name for field in fields(cls)}
        unknown = sorted(set(values) - known)
        if unknown:
            raise ConfigError(f"unknown network settings {', '.join(unknown)}; known are {', '.join(sorted(known))}")
        if "arch" not in values:
            raise ConfigError("a network's settings need 'arch', e.g. \"1262-2-4:8:8:16\"")
        return cls(**values)


def renamed(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings as earlier versions wrote them, under the names of today."""
    former = settings.get("activation_ste")
    if former not in _ESTIMATORS:
        return settings
    kept = {name: value for name, value in settings.items() if name != "activation_ste"}
    return {"activations": _ESTIMATORS[former]} | kept


def _one_of(name: str, value: object, choices: tuple[object, ...]) -> None:
    if value not in choices:
        raise ConfigError(f"{name}={value!r}: expected one of {', '.join(map(str, choices))}")
