"""Pictures in ImageNet's layout: ROOT/train/CLASS/*.jpg and ROOT/val/CLASS/*.jpg.

The classes are the sorted directory names of train/, for both splits. The paper's data set, Imagenette and most sets of
one's own come this way.
"""

import os
from pathlib import Path

import numpy as np
from PIL import Image

from ebnet.data.dataset import IMAGENET_STATISTICS, Dataset, Labels, Split
from ebnet.errors import DataError

_ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".ppm")
_LAYOUT = "expected ROOT/train/CLASS/*.jpg and ROOT/val/CLASS/*.jpg"


class FolderDataset(Dataset):
    """One split of a directory of class directories; pictures are decoded to RGB when asked for."""

    channels = 3
    statistics = IMAGENET_STATISTICS

    def __init__(self, root: Path, split: Split, name: str = "folder") -> None:
        self.name, self.split, self.directory = name, split, root / split
        if not root.is_dir():
            raise DataError(f"{root}: no such directory; {_LAYOUT}")
        here = _subdirectories(self.directory)
        self.classes = _subdirectories(root / "train") or here
        if not here:
            raise DataError(f"{self.directory}: no class directories; {_LAYOUT}")
        if unknown := sorted(set(here) - set(self.classes)):
            raise DataError(f"{self.directory / unknown[0]}: this class is not in {root / 'train'}; {_LAYOUT}")
        files, labels = [], []
        for label, name_of_class in enumerate(self.classes):
            found = _pictures(self.directory / name_of_class)
            files += [os.fsencode(f"{name_of_class}/{file}") for file in found]
            labels += [label] * len(found)
        if not files:
            raise DataError(f"{self.directory}: no images ({', '.join(_ENDINGS)}) in its class directories")
        # One array, not a million strings: worker processes share its memory instead of copying it piece by piece.
        self._files = np.array(files, dtype=np.bytes_)
        self._labels = np.array(labels, np.int64)

    @property
    def labels(self) -> Labels:
        return self._labels

    def open(self, index: int) -> Image.Image:
        return Image.open(self.source(index))

    def source(self, index: int) -> str:
        return f"{self.directory}/{os.fsdecode(self._files[index])}"


def _subdirectories(directory: Path) -> list[str]:
    if not directory.is_dir():
        return []
    with os.scandir(directory) as entries:
        return sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))


def _pictures(directory: Path) -> list[str]:
    if not directory.is_dir():
        return []
    return sorted(name for name in os.listdir(directory) if name.lower().endswith(_ENDINGS) and name[0] != ".")
