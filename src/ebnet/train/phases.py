"""The phases of training (Section 4.1, "Optimization policy"; appendix A.6 for the teacher).

0. teacher: the real-valued network of the same structure, or of one of its own.
1. stage1-one-expert: binary activations, real weights, one expert.
2. stage1-experts: the same with all experts, replicated from the one.
3. stage2: binary activations and binary weights.
"""

from dataclasses import dataclass, replace

import torch

from ebnet.models.config import NetworkConfig
from ebnet.models.network import ExpertBinaryNetwork
from ebnet.nn import Precision
from ebnet.recipe.phases import PhaseName
from ebnet.recipe.settings import Recipe


@dataclass(frozen=True)
class Phase:
    """What a phase asks of its network."""

    name: PhaseName
    precision: Precision
    one_expert: bool

    def config(self, recipe: Recipe, num_classes: int, in_channels: int) -> NetworkConfig:
        experts = 1 if self.one_expert else recipe.network.experts
        return recipe.network.config(num_classes, in_channels, experts, recipe.table(self.name).arch)


PHASES: dict[PhaseName, Phase] = {
    phase.name: phase
    for phase in (
        Phase("teacher", Precision.REAL, True),
        Phase("stage1-one-expert", Precision.BINARY_INPUT, True),
        Phase("stage1-experts", Precision.BINARY_INPUT, False),
        Phase("stage2", Precision.BINARY, False),
    )
}


def start_network(
    config: NetworkConfig, phase: Phase, before: ExpertBinaryNetwork | None, seed: int
) -> ExpertBinaryNetwork:
    """The network a phase begins with: the one before it, replicated and binarized as needed, or a fresh one.

    A network of another structure (a deeper teacher) cannot be continued, only learnt from: then too a fresh one.
    """
    torch.manual_seed(seed)  # initial weights, and omega at replication
    if before is None or not _continues(before, config):
        return ExpertBinaryNetwork(config, phase.precision)
    before = _with_settings(before, config)
    if before.config.experts != config.experts:
        before.replicate(config.experts)
    before.set_precision(phase.precision)
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


def differing_settings(theirs: NetworkConfig, ours: NetworkConfig, precision: Precision) -> list[str]:
    """What keeps a network from being the one that is wanted, each as a phrase."""
    found, wanted = (material(config, precision).to_dict() for config in (theirs, ours))
    return [f"{key} is {found[key]!r}, not {wanted[key]!r}" for key in wanted if found[key] != wanted[key]]


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
