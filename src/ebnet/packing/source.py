"""What there is to pack: a run directory or a saved network, with the preprocessing and labels that lie beside it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ebnet.errors import CheckpointError
from ebnet.models.network import ExpertBinaryNetwork
from ebnet.models.pretrained import load_pretrained
from ebnet.runs.final import FINAL, read_labels, read_preprocessing


@dataclass(frozen=True)
class Packable:
    model: ExpertBinaryNetwork
    preprocessing: dict[str, Any] | None
    labels: list[str] | None


def open_packable(path: str | Path) -> Packable:
    """RUN (a run directory: its `final/`) or MODEL (a directory that `save_pretrained` wrote)."""
    directory = Path(path)
    if not directory.is_dir():
        raise CheckpointError(f"{directory} is not a directory; give a run directory or a saved network's directory")
    if (directory / FINAL / "config.json").is_file():
        directory = directory / FINAL
    elif not (directory / "config.json").is_file():
        raise CheckpointError(
            f"{directory} holds neither {FINAL}/config.json (a finished run) nor config.json (a saved network)"
        )
    model = load_pretrained(directory)
    return Packable(model, read_preprocessing(directory), read_labels(directory))
