import gzip
from pathlib import Path

import numpy as np
import pytest
from tests.small_data import idx

from ebnet.data import ArrayDataset, open_dataset
from ebnet.data.fashion_mnist import DEBIAN_DIRECTORY, read_idx
from ebnet.errors import DataError


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    for prefix, count in (("train", 30), ("t10k", 10)):
        images = np.arange(count * 28 * 28).reshape(count, 28, 28).astype(np.uint8)
        labels = (np.arange(count) % 10).astype(np.uint8)
        (tmp_path / f"{prefix}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(images)))
        (tmp_path / f"{prefix}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(labels)))
    return tmp_path


def test_both_splits_are_read(directory: Path) -> None:
    data = open_dataset("fashion-mnist", directory)
    assert isinstance(data, ArrayDataset)
    assert data.images.shape == (30, 28, 28, 1)
    assert data.label(13) == 3
    assert data.classes[9] == "Ankle boot"
    assert data.channels == 1
    assert np.array_equal(data.image(1)[:, :, 0].ravel(), np.arange(784, 1568).astype(np.uint8))
    assert len(open_dataset("fashion-mnist", directory, "val")) == 10


def test_unpacked_files_do_too(directory: Path) -> None:
    for path in directory.glob("*.gz"):
        path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
        path.unlink()
    assert len(open_dataset("fashion-mnist", directory)) == 30


@pytest.mark.parametrize("damage", ["gz", "short", "long", "magic", "header", "count"])
def test_damaged_files_are_named(directory: Path, damage: str) -> None:
    path = directory / "train-labels-idx1-ubyte.gz"
    packed = path.read_bytes()
    plain = gzip.decompress(packed)
    path.write_bytes(
        {
            "gz": packed[:-9],
            "short": gzip.compress(plain[:-1]),
            "long": gzip.compress(plain + b"x"),
            "magic": gzip.compress(b"\x01" + plain[1:]),
            "header": gzip.compress(plain[:6]),
            "count": gzip.compress(idx(np.zeros(5, np.uint8))),
        }[damage]
    )
    name = directory if damage == "count" else path
    with pytest.raises(DataError, match=rf"{name}: .*(truncated|not an idx file|30 train images but 5 labels).*apt"):
        open_dataset("fashion-mnist", directory)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"train-images-idx3-ubyte\.gz: no such file; get the files"):
        open_dataset("fashion-mnist", tmp_path)


def test_a_header_larger_than_any_memory_is_only_compared(tmp_path: Path) -> None:
    path = tmp_path / "x-idx3-ubyte"
    path.write_bytes(bytes([0, 0, 8, 3]) + b"\xff" * 12)
    with pytest.raises(DataError, match="truncated"):
        read_idx(path, 3)


@pytest.mark.skipif(not DEBIAN_DIRECTORY.is_dir(), reason="Debian's dataset-fashion-mnist is not installed")
def test_the_real_one() -> None:
    data = open_dataset("fashion-mnist", DEBIAN_DIRECTORY, "val")
    assert len(data) == 10_000
    assert np.bincount(data.labels).tolist() == [1000] * 10
