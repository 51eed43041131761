"""CIFAR-10 and CIFAR-100 (Krizhevsky 2009) from the official *binary* archives; no pickle is ever loaded.

A file is a row of records: the label bytes (CIFAR-10: the class; CIFAR-100: the coarse class, then the fine one that is
used), then 3,072 pixels, the 32x32 red plane first, then green, then blue.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ebnet.data.dataset import ArrayDataset, Split, Statistics
from ebnet.errors import DataError

_PIXELS = 3 * 32 * 32


@dataclass(frozen=True)
class CifarLayout:
    """Which files an archive has and how they are to be read."""

    name: str
    archive: str
    directory: str
    train: tuple[str, ...]
    val: tuple[str, ...]
    names: str
    label_bytes: int
    records: int
    """Pictures in all train files together."""
    val_records: int
    statistics: Statistics


CIFAR10 = CifarLayout(
    "cifar10",
    "cifar-10-binary.tar.gz",
    "cifar-10-batches-bin",
    tuple(f"data_batch_{i}.bin" for i in range(1, 6)),
    ("test_batch.bin",),
    "batches.meta.txt",
    1,
    50_000,
    10_000,
    Statistics((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
)
CIFAR100 = CifarLayout(
    "cifar100",
    "cifar-100-binary.tar.gz",
    "cifar-100-binary",
    ("train.bin",),
    ("test.bin",),
    "fine_label_names.txt",
    2,
    50_000,
    10_000,
    Statistics((0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762)),
)


def open_cifar(layout: CifarLayout, root: Path, split: Split) -> ArrayDataset:
    """One split, from the directory of the .bin files or the one above it."""
    directory = root / layout.directory if (root / layout.directory).is_dir() else root
    advice = f"unpack {layout.archive} into {root} (or run: ebnet data fetch {layout.name} --root {root})"
    names = _lines(directory / layout.names, advice)
    files = layout.train if split == "train" else layout.val
    expected = (layout.records if split == "train" else layout.val_records) // len(files)
    records = np.concatenate([_records(directory / file, layout.label_bytes, expected, advice) for file in files])
    labels = records[:, layout.label_bytes - 1].astype(np.int64)
    planes = records[:, layout.label_bytes :].reshape(-1, 3, 32, 32)
    images = np.ascontiguousarray(planes.transpose(0, 2, 3, 1))
    return ArrayDataset(layout.name, split, images, labels, names, layout.statistics)


def _records(path: Path, label_bytes: int, expected: int, advice: str) -> np.ndarray:
    size = label_bytes + _PIXELS
    try:
        data = np.fromfile(path, np.uint8)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); {advice}") from error
    if len(data) != expected * size:
        raise DataError(
            f"{path}: {len(data)} bytes, expected {expected * size} ({expected} records of {size}): "
            f"truncated or another file; {advice}"
        )
    return data.reshape(expected, size)


def _lines(path: Path, advice: str) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); {advice}") from error
    return [line.strip() for line in text.splitlines() if line.strip()]
