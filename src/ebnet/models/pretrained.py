"""A network on disk: `config.json` for its structure, `model.safetensors` for its numbers. No pickle."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save

from ebnet.errors import CheckpointError, EbnetError
from ebnet.files import read_json, write_atomically
from ebnet.models.config import NetworkConfig
from ebnet.models.network import ExpertBinaryNetwork
from ebnet.nn.precision import Precision

FORMAT = "ebnet"
VERSION = 1


def save_pretrained(model: ExpertBinaryNetwork, directory: str | Path) -> Path:
    """Write `config.json` and `model.safetensors` into `directory`; an interrupted write leaves the old files whole."""
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    config = {
        "format": FORMAT,
        "version": VERSION,
        "precision": str(model.precision),
        "network": model.config.to_dict(),
    }
    state = {name: tensor.detach().contiguous() for name, tensor in model.state_dict().items()}
    write_atomically(directory / "model.safetensors", save(state))
    write_atomically(directory / "config.json", json.dumps(config, indent=2).encode() + b"\n")
    return directory


def load_pretrained(directory: str | Path) -> ExpertBinaryNetwork:
    """The network that `save_pretrained` wrote, in eval mode."""
    directory = Path(directory)
    config = _read_config(directory / "config.json")
    try:
        network = NetworkConfig.from_dict(config["network"])
        model = ExpertBinaryNetwork(network, Precision.parse(config["precision"]))
    except EbnetError as error:
        raise CheckpointError(f"{directory / 'config.json'}: {error}") from error
    path = directory / "model.safetensors"
    try:
        state = load_file(path)
    except FileNotFoundError:
        raise CheckpointError(f"{path} does not exist") from None
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{path} is damaged: {error}") from error
    load_state(model, state, str(path))
    return model.eval()


def load_state(model: torch.nn.Module, state: dict[str, torch.Tensor], source: str) -> None:
    """Load a state dict strictly; what is missing, unknown or of another shape comes as one list."""
    expected = model.state_dict()
    faults = [f"missing {name} {tuple(t.shape)}" for name, t in expected.items() if name not in state]
    faults += [f"unknown {name} {tuple(t.shape)}" for name, t in state.items() if name not in expected]
    faults += [
        f"{name} is {tuple(t.shape)}, expected {tuple(expected[name].shape)}"
        for name, t in state.items()
        if name in expected and t.shape != expected[name].shape
    ]
    if faults:
        raise CheckpointError(f"{source} does not fit the network:\n  " + "\n  ".join(faults))
    model.load_state_dict(state)


def _read_config(path: Path) -> dict[str, Any]:
    config = read_json(path, "JSON", CheckpointError, "a saved network is a directory with config.json")
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise CheckpointError(f'{path} does not describe a network: expected "format": "{FORMAT}"')
    if config.get("version") != VERSION:
        raise CheckpointError(f"{path} has version {config.get('version')!r}; this program reads version {VERSION}")
    for key in ("network", "precision"):
        if key not in config:
            raise CheckpointError(f"{path} has no {key!r}")
    return config
