"""A trained network given in place of a phase."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ebnet.errors import CheckpointError
from ebnet.models.config import NetworkConfig
from ebnet.models.network import ExpertBinaryNetwork
from ebnet.models.pretrained import load_pretrained
from ebnet.runs.checkpoint import load_checkpoint
from ebnet.runs.phase import PhaseDirectory, network_of
from ebnet.train.phases import Phase, differing_settings


def load_given(
    path: str, phase: Phase, config: NetworkConfig, say: Callable[[str], None] = lambda message: None
) -> ExpertBinaryNetwork:
    """A trained network given in place of a phase, checked to be one that the phase could have produced."""
    place = Path(path).expanduser()
    if (place / "config.json").exists():
        network = load_pretrained(place)
    elif place.is_file():
        network = network_of(load_checkpoint(place))
    elif (newest := PhaseDirectory(place).newest(say)) is not None:
        network = network_of(newest)
    else:
        raise CheckpointError(
            f"{path} (for {phase.name}) is neither a directory with config.json and model.safetensors nor the "
            "directory of a trained phase"
        )
    if network.precision is not phase.precision:
        raise CheckpointError(
            f"{path} is a network of precision {network.precision.value}, but {phase.name} is {phase.precision.value}"
        )
    if phase.name == "teacher":  # any structure may teach, if it speaks of the same images and classes
        config = replace(network.config, num_classes=config.num_classes, in_channels=config.in_channels)
    differing = differing_settings(network.config, config, phase.precision)
    if differing:
        raise CheckpointError(f"{path} does not fit {phase.name} of the recipe: {', '.join(differing)}")
    return network
