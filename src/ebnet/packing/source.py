"""A trained network, wherever it lies, with its preprocessing and its labels."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ebnet.errors import CheckpointError
from ebnet.models.network import ExpertBinaryNetwork
from ebnet.models.pretrained import load_pretrained
from ebnet.packing.unpack import unpacked
from ebnet.runs.final import FINAL, read_labels, read_preprocessing
from ebnet.runtime.engine import load
from ebnet.zoo import PREFIX as ZOO


@dataclass(frozen=True)
class Packable:
    model: ExpertBinaryNetwork
    preprocessing: dict[str, Any] | None
    labels: list[str] | None


def open_packable(path: str | Path) -> Packable:
    """A run directory (its `final/`), a directory that `save_pretrained` wrote, a packed file, or zoo:NAME."""
    directory = Path(path)
    if directory.is_file() or str(path).startswith(ZOO):
        engine = load(path)
        return Packable(unpacked(engine), asdict(engine.preprocessing), engine.labels)
    if not directory.is_dir():
        raise CheckpointError(
            f"{directory} does not exist; give a run directory, a saved network's directory, a packed file or zoo:NAME"
        )
    if (directory / FINAL / "config.json").is_file():
        directory = directory / FINAL
    elif not (directory / "config.json").is_file():
        raise CheckpointError(
            f"{directory} holds neither {FINAL}/config.json (a finished run) nor config.json (a saved network)"
        )
    model = load_pretrained(directory)
    return Packable(model, read_preprocessing(directory), read_labels(directory))
