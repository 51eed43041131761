"""The paper's steps as stages (Section 4.1, "Optimization policy"; appendix A.6 for the teacher).

0. teacher: the real-valued network of the same structure, or of one of its own.
1. stage1-one-expert: binary activations, real weights, one expert.
2. stage1-experts: the same with all experts, replicated from the one.
3. stage2: binary activations and binary weights.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import torch

from ebnet.errors import CheckpointError
from ebnet.models.config import NetworkConfig
from ebnet.models.network import ExpertBinaryNetwork
from ebnet.models.pretrained import load_pretrained
from ebnet.nn import Precision
from ebnet.train.checkpoint import BEST, LAST, PREVIOUS, Checkpoint, load_checkpoint
from ebnet.train.recipe import STAGE_NAMES, Recipe, StageName


@dataclass(frozen=True)
class Stage:
    """What a stage asks of its network."""

    name: StageName
    precision: Precision
    one_expert: bool

    @property
    def number(self) -> int:
        return STAGE_NAMES.index(self.name)

    @property
    def directory(self) -> str:
        return f"{self.number}-{self.name}"

    def config(self, recipe: Recipe, num_classes: int, in_channels: int) -> NetworkConfig:
        experts = 1 if self.one_expert else recipe.network.experts
        return recipe.network.config(num_classes, in_channels, experts, recipe.table(self.name).arch)


STAGES: dict[StageName, Stage] = {
    stage.name: stage
    for stage in (
        Stage("teacher", Precision.REAL, True),
        Stage("stage1-one-expert", Precision.BINARY_INPUT, True),
        Stage("stage1-experts", Precision.BINARY_INPUT, False),
        Stage("stage2", Precision.BINARY, False),
    )
}


def start_network(
    config: NetworkConfig, stage: Stage, before: ExpertBinaryNetwork | None, seed: int
) -> ExpertBinaryNetwork:
    """The network a stage begins with: the one before it, replicated and binarized as needed, or a fresh one.

    A network of another structure (a deeper teacher) cannot be continued, only learnt from: then too a fresh one.
    """
    torch.manual_seed(seed * len(STAGES) + stage.number)  # initial weights, and omega at replication
    if before is None or not _continues(before, config):
        return ExpertBinaryNetwork(config, stage.precision)
    before = _with_settings(before, config)
    if before.config.experts != config.experts:
        before.replicate(config.experts)
    before.set_precision(stage.precision)
    return before


def material(config: NetworkConfig, precision: Precision) -> NetworkConfig:
    """`config` with the settings at their defaults that play no part in such a network.

    One expert has no gate, and only binary weights are binarized a second time: networks that differ in nothing else
    are the same network, and one may go on where the other stopped.
    """
    idle = []
    if config.conv == "cond" or config.experts == 1:
        idle += ["gate", "temperature"]
    if config.conv == "expert" or not precision.binary_weights:
        idle += ["cond_outer_ste"]
    return replace(config, **{name: getattr(NetworkConfig, name) for name in idle})


def _continues(before: ExpertBinaryNetwork, config: NetworkConfig) -> bool:
    """Whether the weights of `before` are those of a network of `config`, up to the number of experts."""
    one = before.config.experts == 1 and config.conv == "expert"
    ours = config.with_experts(1) if one else config
    return material(before.config, before.precision) == material(ours, before.precision)


def _with_settings(before: ExpertBinaryNetwork, config: NetworkConfig) -> ExpertBinaryNetwork:
    """The same weights in a network that has the settings of `config`, but the experts of `before`."""
    wanted = config.with_experts(before.config.experts)
    if before.config == wanted:
        return before
    network = ExpertBinaryNetwork(wanted, before.precision)
    network.load_state_dict(before.state_dict())
    return network


def network_of(checkpoint: Checkpoint) -> ExpertBinaryNetwork:
    """The network a checkpoint holds."""
    state = checkpoint.state
    network = ExpertBinaryNetwork(NetworkConfig.from_dict(state["network"]), Precision(state["precision"]))
    network.load_state_dict(checkpoint.part("model"))
    return network


def load_stage(run: str | Path, name: StageName, best: bool = False) -> ExpertBinaryNetwork:
    """The network at the end of a stage of a run, or where it was best on the validation pictures."""
    directory = Path(run) / "stages" / STAGES[name].directory
    path = directory / (BEST if best else LAST)
    if not path.exists():
        have = sorted(found.name for found in (Path(run) / "stages").glob("*/") if (found / LAST).exists())
        raise CheckpointError(f"{path} does not exist; {run} has the stages: {', '.join(have) or 'none yet'}")
    return network_of(load_checkpoint(path))


def load_ready(path: str, stage: Stage, config: NetworkConfig) -> ExpertBinaryNetwork:
    """A trained network given in place of a stage, checked to be one that the stage could have produced."""
    place = Path(path).expanduser()
    if (place / "config.json").exists():
        network = load_pretrained(place)
    elif place.is_file():
        network = network_of(load_checkpoint(place))
    elif (place / LAST).exists() or (place / PREVIOUS).exists():
        network = network_of(load_checkpoint(place / LAST))
    else:
        raise CheckpointError(
            f"{path} (for stage {stage.name}) is neither a directory with config.json and model.safetensors nor the "
            "directory of a trained stage"
        )
    if network.precision is not stage.precision:
        raise CheckpointError(
            f"{path} is a network of precision {network.precision.value}, but {stage.name} is {stage.precision.value}"
        )
    theirs, ours = (material(c, stage.precision).to_dict() for c in (network.config, config))
    if stage.name == "teacher":  # any structure may teach, if it speaks of the same pictures and classes
        ours = theirs | {key: ours[key] for key in ("num_classes", "in_channels")}
    differing = [f"{key} is {theirs[key]!r}, not {ours[key]!r}" for key in ours if theirs[key] != ours[key]]
    if differing:
        raise CheckpointError(f"{path} does not fit stage {stage.name} of the recipe: {', '.join(differing)}")
    return network
