"""Downloads that end with the right bytes or with a sentence saying what to do.

An archive is written to NAME.part, taken up again where it stopped, checked against its published sum, and only then
unpacked, in a directory beside the target that takes its place when complete. An archive that was brought by hand is
found, checked and unpacked the same way.
"""

import hashlib
import os
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import get_args
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from ebnet.data.catalogue import data_home, entry, open_dataset
from ebnet.data.dataset import Split
from ebnet.errors import DataError

_CHUNK = 1 << 20
_TIMEOUT = 30
_PARTIAL, _NOTHING_BEYOND = 206, 416  # HTTP: here is the rest; the range starts at the end
Report = Callable[[str, int, int | None], None]
"""Called with (file name, bytes so far, bytes in all if known)."""


@dataclass(frozen=True)
class Source:
    """One file to download; `md5` is the sum its publisher gives."""

    url: str
    md5: str

    @property
    def name(self) -> str:
        return self.url.rsplit("/", 1)[1]


_TORONTO = "https://www.cs.toronto.edu/~kriz"
_ZALANDO = "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion"
SOURCES = {
    "cifar10": (Source(f"{_TORONTO}/cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530"),),
    "cifar100": (Source(f"{_TORONTO}/cifar-100-binary.tar.gz", "03b5dce01913d631647c71ecec9e9cb8"),),
    "fashion-mnist": (
        Source(f"{_ZALANDO}/train-images-idx3-ubyte.gz", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
        Source(f"{_ZALANDO}/train-labels-idx1-ubyte.gz", "25c81989df183df01b3e8a0aad5dffbe"),
        Source(f"{_ZALANDO}/t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79"),
        Source(f"{_ZALANDO}/t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310"),
    ),
    "imagenette": (
        Source(
            "https://s3.amazonaws.com/fast-ai-imageclas/imagenette2-160.tgz",
            "e793b78cc4c9e9a4ccc0c1155377a412",
        ),
    ),
}


def fetch(name: str, root: Path | None = None, report: Report | None = None) -> Path:
    """Bring the data set `name` to `root` (default: a place `open_dataset` looks at); returns that directory."""
    if name not in SOURCES:
        raise DataError(f"{name} cannot be fetched ({entry(name).summary}); these can: {', '.join(SOURCES)}")
    directory = root or data_home() / name
    if _is_there(name, directory):
        return directory
    directory.mkdir(parents=True, exist_ok=True)
    for source in SOURCES[name]:
        path = directory / source.name
        if not path.exists():
            _download(source, path, report or _silent)
        elif (found := _md5(path)) != source.md5:
            raise DataError(f"{path}: its MD5 is {found}, expected {source.md5}; remove it and fetch it again")
        if source.name.endswith((".tar.gz", ".tgz")):
            _unpack(path, directory)
            path.unlink()
    return directory


def _is_there(name: str, directory: Path) -> bool:
    try:
        return all(len(open_dataset(name, directory, split)) > 0 for split in get_args(Split))
    except DataError:
        return False


def _silent(name: str, done: int, total: int | None) -> None:
    return None


def _download(source: Source, path: Path, report: Report) -> None:
    part = path.with_name(path.name + ".part")
    try:
        _continue(source, part, report)
    except HTTPError as error:
        raise DataError(_by_hand(source, path, f"HTTP {error.code} {error.reason}")) from error
    except (HTTPException, OSError) as error:
        raise DataError(_by_hand(source, path, str(getattr(error, "reason", error)))) from error
    if (found := _md5(part)) != source.md5:
        part.unlink()
        raise DataError(f"{source.url}: the download's MD5 is {found}, expected {source.md5}; fetch it again")
    os.replace(part, path)


def _continue(source: Source, part: Path, report: Report) -> None:
    """Append what is missing of the file, or write it anew if the server cannot go on from the middle."""
    done = part.stat().st_size if part.exists() else 0
    request = Request(source.url, headers={"Range": f"bytes={done}-"} if done else {})
    try:
        answer = urlopen(request, timeout=_TIMEOUT)
    except HTTPError as error:
        if error.code == _NOTHING_BEYOND and done:
            return
        raise
    with answer, part.open("ab" if answer.status == _PARTIAL else "wb") as file:
        done = file.tell()
        length = answer.headers.get("Content-Length")
        total = done + int(length) if length else None
        while chunk := answer.read(_CHUNK):
            file.write(chunk)
            done += len(chunk)
            report(source.name, done, total)
        file.flush()
        os.fsync(file.fileno())
    if total is not None and done < total:
        raise OSError(f"the connection ended {total - done} bytes early")


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _by_hand(source: Source, path: Path, reason: str) -> str:
    return (
        f"could not download {source.url} ({reason}); run the same command again to go on where it stopped, "
        f"or download it on another machine (MD5 {source.md5}), put it at {path}, and run the same command again"
    )


def _unpack(archive: Path, directory: Path) -> None:
    """Unpack beside the target, then move each top-level entry into place; nothing can be written elsewhere."""
    with tempfile.TemporaryDirectory(prefix=".unpack-", dir=directory) as beside:
        try:
            with tarfile.open(archive) as tar:
                tar.extractall(beside, filter="data")  # refuses absolute paths, "..", links out and devices
        except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
            raise DataError(f"{archive}: cannot be unpacked ({error}); remove it and fetch it again") from error
        for item in Path(beside).iterdir():
            target = directory / item.name
            if target.is_dir():
                shutil.rmtree(target)
            os.replace(item, target)
