"""Checkpoints: one safetensors file each, with the state as JSON in its header and a checksum over both.

One file cannot disagree with itself, so a checkpoint is whole or is not there; a damaged file is noticed by its
checksum.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from ebnet.errors import CheckpointError
from ebnet.files import write_atomically

FORMAT = "ebnet-checkpoint"
VERSION = "1"


@dataclass(frozen=True)
class Checkpoint:
    """Tensors by name, and everything else as plain values."""

    tensors: dict[str, Tensor]
    state: dict[str, Any]

    def part(self, prefix: str) -> dict[str, Tensor]:
        """The tensors named `prefix.*`, without the prefix."""
        start = f"{prefix}."
        return {name.removeprefix(start): tensor for name, tensor in self.tensors.items() if name.startswith(start)}

    @staticmethod
    def join(**parts: dict[str, Tensor]) -> dict[str, Tensor]:
        """Tensors of several parts under names that `part` takes apart again."""
        return {f"{part}.{name}": tensor for part, tensors in parts.items() for name, tensor in tensors.items()}


def save_checkpoint(path: Path, checkpoint: Checkpoint, keep: Path | None = None) -> None:
    """Write atomically; `keep` names the file under which the version so far survives."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in checkpoint.tensors.items()}
    state = json.dumps(checkpoint.state)
    header = {"format": FORMAT, "version": VERSION, "state": state, "sha256": _checksum(tensors, state)}
    write_atomically(path, save(tensors, metadata=header), keep)


def load_checkpoint(path: Path) -> Checkpoint:
    """Read and verify; a CheckpointError says how the file is wrong."""
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            # Copies, because the file's mapping must not outlive a later replacement of the file.
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError as error:
        raise CheckpointError(f"{path} does not exist") from error
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{path} is damaged: {error}") from error
    if header.get("format") != FORMAT or header.get("version") != VERSION:
        raise CheckpointError(f"{path} is not a checkpoint of this version (format {FORMAT} {VERSION})")
    state = header.get("state", "")
    if header.get("sha256") != _checksum(tensors, state):
        raise CheckpointError(f"{path} is damaged: its checksum does not fit its content")
    return Checkpoint(tensors, json.loads(state))


def optimizer_tensors(optimizer: torch.optim.Optimizer, names: list[str]) -> dict[str, Tensor]:
    """The optimizer's state as tensors `parameter/quantity`; its settings belong to the recipe."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    return {
        f"{name}/{quantity}": value
        for name, parameter in zip(names, parameters, strict=True)
        for quantity, value in optimizer.state.get(parameter, {}).items()
    }


def restore_optimizer(optimizer: torch.optim.Optimizer, names: list[str], tensors: dict[str, Tensor]) -> None:
    """Undo `optimizer_tensors` on a fresh optimizer of the same parameters."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    by_name = dict(zip(names, parameters, strict=True))
    for key, value in tensors.items():
        name, quantity = key.rsplit("/", 1)
        if name not in by_name:
            raise CheckpointError(f"the checkpoint has optimizer state for {name}, which the network does not have")
        parameter = by_name[name]
        # In the parameter's device and memory format, like the optimizer's own; the step count is a scalar.
        like = torch.empty_like(parameter) if value.dim() else torch.empty((), device=parameter.device)
        optimizer.state[parameter][quantity] = like.copy_(value)


def _checksum(tensors: dict[str, Tensor], state: str) -> str:
    digest = hashlib.sha256(state.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)};".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
