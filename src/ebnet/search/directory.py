"""STUDY, the directory that names a study on this machine: where its storage is, or the storage itself."""

import json
from pathlib import Path

from ebnet.errors import StudyError
from ebnet.files import explained, write_atomically
from ebnet.search import storage as storages
from ebnet.search.study import Study

POINTER = "study.json"


def create_directory(directory: Path, url: str | None) -> str:
    """Make STUDY and note where the storage is; the address of the storage."""
    if directory.exists() and not directory.is_dir():
        raise StudyError(f"{directory} is a file, not a directory for a study; use another --out")
    if directory.is_dir() and any(directory.iterdir()) and not (directory / POINTER).exists():
        raise StudyError(f"{directory} holds something else than a study; use another --out")
    full = storages.complete_url(url) if url else storages.default_url(directory)
    with explained(directory):
        directory.mkdir(parents=True, exist_ok=True)
    # A password is not for files: later commands take it from --storage, PGPASSWORD or ~/.pgpass.
    kept = {"name": directory.resolve().name, "storage": storages.without_password(full) if url else None}
    write_atomically(directory / POINTER, (json.dumps(kept, indent=2) + "\n").encode())
    return full


def open_study(
    directory: Path,
    url: str | None = None,
    heartbeat: int = storages.HEARTBEAT_SECONDS,
    grace: int = storages.GRACE_SECONDS,
) -> Study:
    """The study that a directory names; with `url` a directory need not exist, its name is enough."""
    if url is None:
        url = _noted_url(directory)
    study = Study(storages.open_storage(url, heartbeat, grace), directory.resolve().name, directory)
    study.ledger.read()
    return study


def _noted_url(directory: Path) -> str:
    pointer = directory / POINTER
    try:
        noted = json.loads(pointer.read_text(encoding="utf-8"))["storage"]
    except FileNotFoundError as error:
        raise StudyError(
            f"{directory} is not a study: it has no {POINTER}. On another machine than the one that began it, add "
            "--storage with the address that `ebnet search` was given"
        ) from error
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise StudyError(f"{pointer} is damaged: {error}") from error
    if noted is None:
        if not (directory / storages.DATABASE).exists():
            raise StudyError(f"{directory} has lost its {storages.DATABASE}")
        return storages.default_url(directory)
    return storages.without_password(noted)
