"""Tar shards in the WebDataset convention, for sets of more files than a file system likes.

A sample is a run of neighbouring members of one key (the path up to the first dot of its last part): KEY.jpg or .png
and KEY.cls, the class as decimal digits. Shards lie in ROOT/train/*.tar and ROOT/val/*.tar, or in ROOT itself with the
split in their names (imagenet-train-000.tar). ROOT/classes.txt may name the classes, one a line.

One pass over the headers finds where each picture lies; it is kept in ROOT/.SPLIT.index.npz for the next time. With it
any picture can be read by position, so the loader's exactness (ranks, workers, restarts) holds here as everywhere. The
shuffle keeps reading local: whole shards change places, then pictures within a moving window do.
"""

import io
import os
import re
import tarfile
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ebnet.data.dataset import IMAGENET_STATISTICS, Dataset, Labels, Split
from ebnet.data.randomness import permutation
from ebnet.errors import DataError

_PICTURES = ("jpg", "jpeg", "png", "webp", "ppm")
_WINDOW = 8192  # pictures among which the shuffle mixes: several shards of the usual size
Index = dict[str, NDArray]


class WebDataset(Dataset):
    """One split of a directory of shards."""

    name = "webdataset"
    channels = 3
    statistics = IMAGENET_STATISTICS

    def __init__(self, root: Path, split: Split, window: int = _WINDOW) -> None:
        self.split, self.window = split, window
        self._shards = _find_shards(root, split)
        self._index = _load_index(root, split, self._shards)
        self.classes = _class_names(root, split, self._index["label"])
        if (highest := int(self._index["label"].max())) >= self.num_classes:
            raise DataError(f"{root}: class {highest} in {split}, but only {self.num_classes} classes are known")

    @property
    def labels(self) -> Labels:
        return self._index["label"]

    def open(self, index: int) -> Image.Image:
        path = self._shards[self._index["shard"][index]]
        length = int(self._index["length"][index])
        with open(path, "rb", buffering=0) as shard:
            data = os.pread(shard.fileno(), length, int(self._index["offset"][index]))
        if len(data) != length:
            raise OSError("the shard ends before the image does")
        return Image.open(io.BytesIO(data))

    def source(self, index: int) -> str:
        path = self._shards[self._index["shard"][index]]
        return f"{path}, member {os.fsdecode(self._index['member'][index])}"

    def order(self, seed: int, epoch: int) -> NDArray[np.int64]:
        places = permutation(seed, epoch, len(self._shards), stream=1)
        starts = np.searchsorted(self._index["shard"], np.arange(len(self._shards) + 1))
        streamed = np.concatenate([np.arange(starts[s], starts[s + 1]) for s in places])
        window = np.arange(len(self)) // self.window
        return streamed[np.lexsort((permutation(seed, epoch, len(self), stream=2), window))]


def _list_shards(root: Path, split: Split) -> list[Path]:
    in_root = (path for path in root.glob("*.tar") if re.search(rf"(^|[-_.]){split}", path.name))
    return sorted((root / split).glob("*.tar")) or sorted(in_root)


def _find_shards(root: Path, split: Split) -> list[Path]:
    if not root.is_dir():
        raise DataError(f"{root}: no such directory; expected shards like {root}/{split}/000.tar")
    shards = _list_shards(root, split)
    if not shards:
        packed = any(root.glob("**/*.tar.*"))
        advice = "; decompress the shards, only plain .tar can be read by position" if packed else ""
        raise DataError(f"{root}: no {split} shards; expected {split}/*.tar or *-{split}*.tar in it{advice}")
    return shards


def _class_names(root: Path, split: Split, labels: Labels) -> list[str]:
    """The names listed, else numbers up to the highest class of the train shards (or of these, if there are none)."""
    listed = root / "classes.txt"
    if listed.is_file():
        return [line.strip() for line in listed.read_text(encoding="utf-8").splitlines() if line.strip()]
    if split == "val" and (train := _list_shards(root, "train")):
        labels = _load_index(root, "train", train)["label"]
    return [str(label) for label in range(int(labels.max()) + 1)]


def _load_index(root: Path, split: Split, shards: list[Path]) -> Index:
    """Where each picture lies; from the saved index if it is of these very files, else from the shards' headers."""
    stats = [path.stat() for path in shards]
    stamp = np.array([f"{p.name} {s.st_size} {s.st_mtime_ns}" for p, s in zip(shards, stats, strict=True)])
    saved = root / f".{split}.index.npz"
    try:
        with np.load(saved, allow_pickle=False) as file:
            if np.array_equal(file["stamp"], stamp):
                return {name: file[name] for name in ("shard", "offset", "length", "label", "member")}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error):
        pass  # none yet, or a damaged one: it is made anew
    index = _scan(shards)
    temporary = saved.with_name(f"{saved.name}.{os.getpid()}")  # several ranks may do this at the same time
    with suppress(OSError):  # a read-only directory only costs the scan next time
        with temporary.open("wb") as out:
            np.savez(out, stamp=stamp, **index)  # type: ignore[arg-type]
        temporary.replace(saved)
    return index


def _scan(shards: list[Path]) -> Index:
    rows: list[tuple[int, int, int, int, bytes]] = []
    for number, path in enumerate(shards):
        found = _scan_shard(path)
        rows += [(number, *row) for row in found]
    shard, offset, length, label, member = zip(*rows, strict=True)
    return {
        "shard": np.array(shard, np.int64),
        "offset": np.array(offset, np.int64),
        "length": np.array(length, np.int64),
        "label": np.array(label, np.int64),
        "member": np.array(member, np.bytes_),
    }


def _scan_shard(path: Path) -> list[tuple[int, int, int, bytes]]:
    """(offset, length, label, member name) of each sample, in the order of the file."""
    pictures: dict[str, tarfile.TarInfo] = {}
    labels: dict[str, int] = {}
    try:
        with tarfile.open(path, "r:") as archive:
            while (member := archive.next()) is not None:
                if not member.isfile():
                    continue
                key, ending = _split_name(member.name)
                if ending in _PICTURES:
                    if key in pictures:
                        raise DataError(f"{path}, member {member.name}: a second image of the key {key!r}")
                    pictures[key] = member
                elif ending == "cls":
                    labels[key] = _read_label(archive, member, path)
            end = archive.offset
    except (tarfile.TarError, OSError, EOFError) as error:
        raise DataError(f"{path}: not a readable tar shard ({error}); copy it again") from error
    _check_end(path, end)
    if not pictures:
        raise DataError(f"{path}: no images in it; expected members KEY.jpg and KEY.cls")
    for key in pictures.keys() ^ labels.keys():
        missing = "class (.cls)" if key in pictures else "image (.jpg, .png)"
        raise DataError(f"{path}: the key {key!r} has no {missing}")
    return [(m.offset_data, m.size, labels[key], os.fsencode(m.name)) for key, m in pictures.items()]


def _split_name(name: str) -> tuple[str, str]:
    path = PurePosixPath(name)
    stem, _, ending = path.name.partition(".")
    return str(path.parent / stem), ending.lower()


def _read_label(archive: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> int:
    file = archive.extractfile(member)
    text = file.read(32) if file else b""
    if not text.strip().isdigit():
        raise DataError(f"{path}, member {member.name}: {text!r} is not a class number")
    return int(text)


def _check_end(path: Path, end: int) -> None:
    """A tar file ends with blocks of zeros; where a header is damaged or cut off, tarfile just stops reading."""
    with path.open("rb") as file:
        file.seek(end)
        if file.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
            raise DataError(f"{path}: damaged or truncated at byte {end}, where a header should be; copy it again")
