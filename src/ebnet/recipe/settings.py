"""A training recipe: every setting of a run as one validated value, read from TOML and written back resolved.

A recipe's `[schedule]` holds for all stages; a table `[stage.NAME]` changes
single settings for one stage.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from ebnet.arch import STEM_WIDTH
from ebnet.errors import ArchError, ConfigError
from ebnet.models.config import (
    Activations,
    Conv,
    GateGradient,
    NetworkConfig,
    Shortcut,
    Stem,
    Unit,
    Weights,
    renamed,
)
from ebnet.models.genotype import parse_arch
from ebnet.recipe.library import recipe_names, shipped_text
from ebnet.recipe.phases import PHASE_NAMES, PhaseName, phase_seed
from ebnet.recipe.text import explain, read_toml, set_value, split_override, write_toml

Overrides = Mapping[str, Any] | Iterable[str]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
ArchName = Annotated[str, BeforeValidator(lambda name: str(name) if isinstance(name, int) else name)]
"""The paper's notation, or that of cells; `1133` without quotes is a number to TOML."""
Decay = Positive | Literal["cosine"]
OutsideTeacher = Literal["efficientnet-lite0"]


class _Table(BaseModel):
    """A table of a recipe: unknown keys are errors, and a validated recipe never changes."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Data(_Table):
    """Which pictures, and what is done to them before the network sees them."""

    name: str
    root: str | None = None
    """Where the set lies; `--data` sets it."""
    images: Count | None = None
    """Train with so many of the training images only, spread evenly over the set; for seeing what more would bring."""
    size: Count
    """Side of the square the network sees; with `fit` at most this."""
    fit: bool = False
    """Choose the size, the stem and what is kept in memory from the images when the run begins."""
    resize: Count | None = None
    """At test time the shorter side becomes this long before the centre is cropped (the paper: 256)."""
    augmentation: Literal["none", "pad-crop", "random-resized-crop"] = "none"
    padding: Annotated[int, Field(ge=0)] = 4
    """Pixels of `pad-crop`."""
    scale: tuple[float, float] = (0.08, 1.0)
    """Area fractions of `random-resized-crop`."""
    flip: bool = True
    mean: tuple[float, ...] | None = None
    """Normalisation; the data set's own statistics where not given."""
    std: tuple[float, ...] | None = None
    in_memory: bool = False
    """Decode the whole set once and keep it as one uint8 array."""
    memory_side: Count | None = None
    """Side of the pictures kept in memory, for sets whose pictures differ in size."""
    workers: Annotated[int, Field(ge=0)] = 0
    """Processes that decode; 0 decodes in the training process."""


class Network(_Table):
    """The network; its classes and input channels come from the data."""

    arch: ArchName
    experts: Count = 4
    stem: Stem = "imagenet"
    stem_width: Count = STEM_WIDTH
    shortcut: Shortcut = "prelu"
    shortcut_reduction: Count = 4
    aggregation: bool = True
    scaling: bool = False
    head_width: Count | None = None
    gate: GateGradient = "softmax"
    temperature: Positive = 1.0
    conv: Conv = "expert"
    weights: Weights = "learned-scale"
    activations: Activations = "sign"
    unit: Unit = "real-to-binary"
    orientations: Literal[1, 4, 8] = 1
    branches: Annotated[int, Field(ge=1, le=16)] = 1
    members: Annotated[int, Field(ge=1, le=16)] = 1
    cond_outer_ste: Literal["clip", "identity"] = "clip"

    @model_validator(mode="before")
    @classmethod
    def _renamed(cls, values: Any) -> Any:
        return renamed(values) if isinstance(values, dict) else values

    @model_validator(mode="after")
    def _known_arch(self) -> Self:
        parse_arch(self.arch)
        return self

    def config(self, num_classes: int, in_channels: int, experts: int, arch: str | None = None) -> NetworkConfig:
        values = self.model_dump() | {"num_classes": num_classes, "in_channels": in_channels, "experts": experts}
        return NetworkConfig.from_dict(values | ({"arch": arch} if arch else {}))


class Schedule(_Table):
    """How one stage is optimised."""

    epochs: Count
    batch_size: Count
    """Of one step, whatever the number of processes and of accumulated parts."""
    learning_rate: Positive = 1e-3
    warmup_epochs: NotNegative = 0.0
    milestones: tuple[Positive, ...] = ()
    """Epochs at which the learning rate is multiplied by `decay`."""
    decay: Decay = 0.1
    """The factor at each milestone; or `cosine`, without milestones: down to 0 along half a cosine."""
    weight_decay: NotNegative = 0.0
    """Adam's L2 term, on every parameter."""
    mixup: NotNegative = 0.0
    """alpha of mixup; 0 turns it off."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if list(self.milestones) != sorted(set(self.milestones)):
            raise ValueError(f"milestones {list(self.milestones)} must rise")
        if self.decay == "cosine" and self.milestones:
            raise ValueError(f'decay = "cosine" has no milestones, but milestones = {list(self.milestones)}')
        return self


class PhaseTable(_Table):
    """What one stage does otherwise than `[schedule]`, and where its teacher or its weights come from."""

    epochs: Count | None = None
    batch_size: Count | None = None
    learning_rate: Positive | None = None
    warmup_epochs: NotNegative | None = None
    milestones: tuple[Positive, ...] | None = None
    decay: Decay | None = None
    weight_decay: NotNegative | None = None
    mixup: NotNegative | None = None
    distill_from: Annotated[PhaseName | None, BeforeValidator(lambda name: None if name == "none" else name)] = None
    """The earlier phase whose network teaches this one; "none" for nobody."""
    checkpoint: str | None = None
    """A trained network to take instead of training: a `save_pretrained` directory or a stage's of another run."""
    start: str | None = None
    """A trained network to begin with: a packed file, `zoo:NAME`, a run or a `save_pretrained` directory."""
    arch: ArchName | None = None
    """Only for the teacher: a structure other than the network's, for example a deeper one."""


class Distillation(_Table):
    """The loss added in stages that have a teacher (Real-to-Binary: knowledge distillation and attention transfer)."""

    teacher: OutsideTeacher | None = None
    """A network that others trained on ImageNet; its logits teach every phase (`ebnet.train.outside_teacher`)."""
    teacher_side: Annotated[int, Field(ge=32, multiple_of=32)] = 224
    """Side of the square that it sees."""
    logits_weight: NotNegative = 1.0
    temperature: Positive = 1.0
    attention_weight: NotNegative = 1.0
    attention_after: Literal["block", "stage"] = "block"


class Routing(_Table):
    """How gates and experts learn; the defaults are the paper's, the reasons in `ebnet.train.routing`."""

    gate_start: Literal["random", "clusters"] = "random"
    """What a gate begins with at replication: random weights, or the clusters of its own input."""
    gate_rate: Positive = 1.0
    """The gates' learning rate as a share of the others'."""
    coupling: NotNegative = 0.0
    """lambda: how much of all experts' gradients each expert learns from beside its own, at the start of a phase."""
    coupling_end: Annotated[float, Field(gt=0, le=1)] = 1.0
    """The share of a phase after which the coupling has fallen to 0."""


class Compute(_Table):
    """How, not what: none of it changes the result beyond rounding, except mixed precision."""

    device: str = "auto"
    threads: Annotated[int, Field(ge=0)] = 0
    """CPU threads; 0 leaves torch's choice."""
    accumulation: Count = 1
    """Parts a process splits its batch into; their gradients are added up."""
    mixed_precision: bool = False
    """bfloat16 where a CUDA device has it, float32 elsewhere."""
    channels_last: bool = False
    compile: bool = False
    sync_batch_norm: bool = True
    """With many processes: statistics over the whole batch rather than each process's part."""


class Log(_Table):
    """How often what is written down."""

    checkpoint_steps: Count = 500
    log_steps: Count = 50
    validate_epochs: Count = 1
    """Validate every so many epochs; always after the last."""
    collapse: Annotated[float, Field(gt=0, le=1)] = 0.95
    """Warn when one expert of a layer takes more than this share of the validation pictures."""
    churn: Annotated[float, Field(gt=0, le=1)] = 0.25
    """Warn when more than this share of the watched images changes expert from one epoch to the next."""


class Recipe(_Table):
    """A whole run."""

    name: str
    description: str = ""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    stages: tuple[PhaseName, ...] = PHASE_NAMES
    """The stages to run, in the paper's order; search runs only the first ones."""
    data: Data
    network: Network
    schedule: Schedule
    stage: dict[PhaseName, PhaseTable] = {}
    distillation: Distillation = Distillation()
    routing: Routing = Routing()
    optimizer: Literal["adam", "bop"] = "adam"
    """What trains the binary weights of Stage II: Adam on latent ones, or Bop without any (`ebnet.train.bop`)."""
    compute: Compute = Compute()
    log: Log = Log()

    @model_validator(mode="after")
    def _stages_fit(self) -> Self:
        order = [PHASE_NAMES.index(name) for name in self.stages]
        if not order or order != sorted(set(order)):
            raise ValueError(f"stages {list(self.stages)} must be some of {list(PHASE_NAMES)}, in this order")
        for name in self.stages:
            table = self.table(name)
            if table.arch and name != "teacher":
                raise ValueError(f"stage.{name}.arch: only the teacher may have a structure of its own")
            if table.start and table.checkpoint:
                raise ValueError(f"stage.{name}: start trains a given network further, checkpoint does not; set one")
            earlier = self.stages[: self.stages.index(name)]
            if table.distill_from and table.distill_from not in earlier:
                raise ValueError(
                    f'stage.{name}.distill_from = "{table.distill_from}": not a stage before it; '
                    f"those are {', '.join(earlier) or 'none'}"
                )
            if table.distill_from == "teacher":
                self._teacher_fits(name)
            self.settings(name)
        return self

    @model_validator(mode="after")
    def _bop_fits(self) -> Self:
        if self.optimizer == "bop" and (self.network.weights != "sign" or self.network.experts > 1):
            raise ValueError('optimizer = "bop" trains plain signs: network.weights = "sign" and network.experts = 1')
        return self

    def _teacher_fits(self, student: PhaseName) -> None:
        own = self.table("teacher").arch
        blocks = parse_arch(own or self.network.arch).blocks
        by_block = self.distillation.attention_weight and self.distillation.attention_after == "block"
        if by_block and blocks != parse_arch(self.network.arch).blocks:
            raise ValueError(
                f"stage.{student} compares attention after each block with the teacher {own}, which has "
                f'other blocks than {self.network.arch}: set distillation.attention_after = "stage"'
            )

    def table(self, name: PhaseName) -> PhaseTable:
        return self.stage.get(name, PhaseTable())

    def seed_of(self, name: PhaseName) -> int:
        """The randomness of one phase."""
        return phase_seed(self.seed, name)

    def settings(self, name: PhaseName) -> Schedule:
        """The schedule of one stage, its own table taken into account."""
        own = self.table(name).model_dump(exclude_none=True, include=set(Schedule.model_fields))
        return Schedule(**(self.schedule.model_dump() | own))

    def changed(self, overrides: "Overrides") -> "Recipe":
        """The recipe with some settings changed, `{"schedule.epochs": 3}` or `["schedule.epochs=3"]`."""
        return parse_recipe(_overridden(self.model_dump(exclude_none=True), overrides), self.name)

    def to_toml(self) -> str:
        return write_toml(self.model_dump(mode="json", exclude_none=True))


def load_recipe(name_or_path: str | Path, overrides: Overrides = ()) -> Recipe:
    """A shipped recipe by name, or a TOML file by path.

    Args:
        overrides: `{"network.experts": 8}`, or `["network.experts=8"]` as the command line has them.
    """
    text = str(name_or_path)
    if text in recipe_names():
        values = read_toml(shipped_text(text), text)
    else:
        path = Path(name_or_path)
        if not path.is_file():
            raise ConfigError(f"{text}: neither a file nor a shipped recipe; those are {', '.join(recipe_names())}")
        values = read_toml(path.read_text(encoding="utf-8"), text)
        values.setdefault("name", path.stem)
    return parse_recipe(_overridden(values, overrides), text)


def parse_recipe(values: dict[str, Any], source: str = "recipe") -> Recipe:
    """Validate; the error names each wrong setting and, for an unknown one, the nearest that exists."""
    try:
        return Recipe.model_validate(values)
    except ValidationError as error:
        raise ConfigError(f"{source}: {explain(error, Recipe)}") from error
    except ArchError as error:
        raise ConfigError(f"{source}: network.arch: {error}") from error


def _overridden(values: dict[str, Any], overrides: Overrides) -> dict[str, Any]:
    pairs = overrides.items() if isinstance(overrides, Mapping) else map(split_override, overrides)
    for key, value in pairs:
        set_value(values, key, value)
    return values
