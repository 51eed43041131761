"""Fashion-MNIST (Xiao, Rasul & Vollgraf 2017): 70,000 grey 28x28 pictures of clothes, as four gzipped idx files.

Debian's package `dataset-fashion-mnist` installs them under /usr/share/datasets.
"""

import gzip
import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ebnet.data.dataset import ArrayDataset, Split, Statistics
from ebnet.errors import DataError

DEBIAN_DIRECTORY = Path("/usr/share/datasets/fashion-mnist")
CLASSES = ["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"]
_PREFIX = {"train": "train", "val": "t10k"}
_STATISTICS = Statistics((0.2860,), (0.3530,))
_UNSIGNED_BYTES = 8
_ADVICE = "get the files with `apt install dataset-fashion-mnist` or `ebnet data fetch fashion-mnist`"


def open_fashion_mnist(root: Path, split: Split) -> ArrayDataset:
    """One split, from a directory of the four files, gzipped or not."""
    images = read_idx(root / f"{_PREFIX[split]}-images-idx3-ubyte.gz", 3)
    labels = read_idx(root / f"{_PREFIX[split]}-labels-idx1-ubyte.gz", 1)
    if len(images) != len(labels):
        raise DataError(f"{root}: {len(images)} {split} images but {len(labels)} labels; {_ADVICE}")
    return ArrayDataset("fashion-mnist", split, images[..., None], labels.astype(np.int64), CLASSES, _STATISTICS)


def read_idx(path: Path, dimensions: int) -> NDArray[np.uint8]:
    """The array of an idx file: two zero bytes, the type, the number of dimensions, their sizes, the data."""
    plain = path.with_suffix("")
    if not path.exists() and plain.exists():
        path = plain
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file; {_ADVICE}") from error
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: damaged or truncated ({error}); {_ADVICE}") from error
    header = 4 + 4 * dimensions
    if len(data) < header or data[:4] != bytes([0, 0, _UNSIGNED_BYTES, dimensions]):
        raise DataError(f"{path}: not an idx file of bytes in {dimensions} dimensions; {_ADVICE}")
    shape = struct.unpack(f">{dimensions}I", data[4:header])
    if len(data) - header != int(np.prod(shape, dtype=object)):
        raise DataError(f"{path}: {len(data) - header} bytes of data, its header says {shape}: truncated; {_ADVICE}")
    return np.frombuffer(data, np.uint8, offset=header).reshape(shape)
