"""Files that are either the old or the new version, never something between, whenever the process dies."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ebnet.errors import CheckpointError, ConfigError, EbnetError


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn the system's refusal to write (full disk, quota, permissions) into an error that says what to do."""
    try:
        yield
    except OSError as error:
        raise CheckpointError(
            f"{path} could not be written: {error.strerror or error}. What was saved before is untouched: "
            "make room (or fix the permissions) and run the same command again"
        ) from error


def write_atomically(path: Path, data: bytes, keep: Path | None = None) -> None:
    """Write a temporary file, fsync it, rename it over `path`, fsync the directory.

    Args:
        keep: the name under which the version so far stays available.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    with explained(path):
        try:
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        if keep is not None and path.exists():
            # A second name first, so that `path` itself never goes missing.
            spare = keep.with_name(f".{keep.name}.tmp")
            spare.unlink(missing_ok=True)
            os.link(path, spare)
            spare.replace(keep)
        temporary.replace(path)
        sync_directory(path.parent)


def read_json(path: Path, what: str, wrong: type[EbnetError], missing: str) -> Any:
    """What a JSON file holds; an error of type `wrong` where it is not `what` or, with the advice `missing`, absent."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise wrong(f"{path} does not exist; {missing}") from None
    except (OSError, ValueError) as error:
        raise wrong(f"{path} is not {what}: {error}") from error


def require_folder(path: Path) -> None:
    """Refuse to write where there is no folder: a misspelt one should not come into being."""
    if not path.absolute().parent.is_dir():
        raise ConfigError(f"{path}: the folder {path.parent} does not exist; make it first, or write elsewhere")


def sync_directory(path: Path) -> None:
    """Make renames in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
