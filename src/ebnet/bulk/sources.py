"""Where many images come from: files of a folder, members of tar shards (the WebDataset convention), single files."""

import io
import os
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ebnet.errors import DataError

ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".ppm")


@dataclass(frozen=True)
class Stored:
    """One image: a file, or the bytes of a tar shard from `offset` on."""

    name: str
    """The path, or `shard.tar/member`."""
    file: str
    length: int
    """Bytes of the image file."""
    offset: int | None = None

    def open(self) -> io.BytesIO:
        with open(self.file, "rb") as file:
            file.seek(self.offset or 0)
            data = file.read(self.length)
        if len(data) != self.length:
            raise OSError(f"{self.file} is shorter than when it was listed")
        return io.BytesIO(data)


def stored_images(sources: Iterable[str | os.PathLike[str]]) -> list[Stored]:
    """All images of the sources, in a fixed order: sources as given, names sorted within a folder."""
    found: list[Stored] = []
    for source in map(Path, sources):
        if source.is_dir():
            found += _folder(source)
        elif source.suffix == ".tar":
            found += shard_images(source)
        elif source.is_file():
            found.append(_file(source))
        else:
            raise DataError(f"{source} does not exist: expected a folder, a tar shard or an image")
    return found


def shard_images(shard: str | os.PathLike[str]) -> list[Stored]:
    """The images of one tar shard, in its order; what is no image (labels, text) is passed over."""
    path = Path(shard)
    try:
        with tarfile.open(path, "r:") as archive:
            members = [member for member in archive if member.isfile() and _is_image(member.name)]
    except FileNotFoundError:
        raise DataError(f"{path} does not exist") from None
    except (tarfile.TarError, OSError, EOFError) as error:
        raise DataError(f"{path}: not a readable tar shard ({error}); copy it again") from error
    return [Stored(f"{path}/{member.name}", str(path), member.size, member.offset_data) for member in members]


def _folder(folder: Path) -> list[Stored]:
    """Images below a folder, and the shards in it."""
    found: list[Stored] = []
    for directory, inner, files in os.walk(folder):
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        for name in sorted(files):
            path = Path(directory) / name
            if name.startswith("."):
                continue
            if _is_image(name):
                found.append(_file(path))
            elif path.suffix == ".tar":
                found += shard_images(path)
    if not found:
        raise DataError(f"{folder}: no images ({', '.join(ENDINGS)}) and no tar shards below it")
    return found


def _file(path: Path) -> Stored:
    return Stored(str(path), str(path), path.stat().st_size)


def _is_image(name: str) -> bool:
    return name.lower().endswith(ENDINGS)
