"""What there is to pack: a run directory or a saved network, with the preprocessing and labels that lie beside it."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ebnet.errors import CheckpointError
from ebnet.models.network import ExpertBinaryNetwork
from ebnet.models.pretrained import load_pretrained


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
    if (directory / "final" / "config.json").is_file():
        directory = directory / "final"
    elif not (directory / "config.json").is_file():
        raise CheckpointError(
            f"{directory} holds neither final/config.json (a finished run) nor config.json (a saved network)"
        )
    model = load_pretrained(directory)
    preprocessing = _read(directory / "preprocessing.json", dict)
    return Packable(model, preprocessing, _read(directory / "labels.json", list))


def _read(path: Path, kind: type) -> Any:
    """A JSON file that may be absent."""
    try:
        value = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} is damaged: {error}") from error
    if not isinstance(value, kind):
        raise CheckpointError(f"{path} is damaged: expected a JSON {kind.__name__}")
    return value
