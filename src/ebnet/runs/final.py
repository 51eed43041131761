"""RUN/final: the finished network and what is needed to use it; there whole, or not at all."""

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ebnet.errors import CheckpointError
from ebnet.files import explained, sync_directory, write_atomically

if TYPE_CHECKING:
    from ebnet.models.network import ExpertBinaryNetwork

FINAL, PREPROCESSING, LABELS = "final", "preprocessing.json", "labels.json"


def write_final(run: Path, network: "ExpertBinaryNetwork", preprocessing: dict[str, Any], labels: list[str]) -> None:
    fresh, final = run / f".{FINAL}.tmp", run / FINAL
    with explained(final):
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir()
        network.save_pretrained(fresh)
    write_atomically(fresh / PREPROCESSING, (json.dumps(preprocessing, indent=2) + "\n").encode())
    write_atomically(fresh / LABELS, (json.dumps(labels, indent=2) + "\n").encode())
    with explained(final):
        shutil.rmtree(final, ignore_errors=True)
        fresh.rename(final)
        sync_directory(run)


def read_preprocessing(final: Path) -> dict[str, Any] | None:
    """What is to be done to a picture before the network sees it, where it is known."""
    return _read(final / PREPROCESSING, dict)


def read_labels(final: Path) -> list[str] | None:
    """The names of the classes, where they are known."""
    return _read(final / LABELS, list)


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
