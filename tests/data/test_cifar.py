from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ebnet.data.cifar import CIFAR10, CIFAR100, CifarLayout, open_cifar
from ebnet.errors import DataError

SMALL10 = replace(CIFAR10, records=20, val_records=3)
SMALL100 = replace(CIFAR100, records=20, val_records=3)


@pytest.fixture(params=[SMALL10, SMALL100], ids=["cifar10", "cifar100"])
def layout(request: pytest.FixtureRequest) -> CifarLayout:
    return request.param


@pytest.fixture
def directory(tmp_path: Path, layout: CifarLayout) -> Path:
    """An archive of the layout in small: the fine label of record i is i, its coarse label 99, its red plane all i."""
    directory = tmp_path / layout.directory
    directory.mkdir()
    classes = 10 if layout.label_bytes == 1 else 100
    (directory / layout.names).write_text("\n".join(f"class {i}" for i in range(classes)) + "\n\n")
    for files, total in ((layout.train, layout.records), (layout.val, layout.val_records)):
        count = total // len(files)
        for part, file in enumerate(files):
            records = np.full((count, layout.label_bytes + 3072), 99, np.uint8)
            number = (part * count + np.arange(count))[:, None]
            records[:, layout.label_bytes - 1 : layout.label_bytes] = number % 10
            planes = records[:, layout.label_bytes :]
            planes[:, :1024], planes[:, 1024:2048], planes[:, 2048:] = number, 100, np.arange(1024) % 251
            records.tofile(directory / file)
    return directory


def test_records_become_pictures(layout: CifarLayout, directory: Path) -> None:
    data = open_cifar(layout, directory.parent, "train")
    assert data.images.shape == (20, 32, 32, 3)
    assert data.labels.tolist() == [i % 10 for i in range(20)]
    assert data.classes[3] == "class 3"
    assert data.num_classes == (10 if layout is SMALL10 else 100)
    assert (data.image(7)[:, :, 0] == 7).all()
    assert (data.image(7)[:, :, 1] == 100).all()
    assert np.array_equal(data.image(7)[:, :, 2].ravel(), np.arange(1024) % 251)
    assert len(open_cifar(layout, directory, "val")) == 3


@pytest.mark.parametrize("size", [0, 100, -1])
def test_truncated_files_are_named(layout: CifarLayout, directory: Path, size: int) -> None:
    path = directory / layout.train[-1]
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2] if size < 0 else data[:size])
    with pytest.raises(DataError, match=rf"{path.name}: \d+ bytes, expected {len(data)} .*data fetch {layout.name}"):
        open_cifar(layout, directory, "train")


def test_missing_files_are_named(layout: CifarLayout, directory: Path) -> None:
    (directory / layout.val[0]).unlink()
    with pytest.raises(DataError, match=rf"{layout.val[0]}: cannot be read .*unpack {layout.archive}"):
        open_cifar(layout, directory, "val")
    (directory / layout.names).unlink()
    with pytest.raises(DataError, match=rf"{layout.names}: cannot be read"):
        open_cifar(layout, directory, "train")


def test_a_label_out_of_range_is_refused(layout: CifarLayout, directory: Path) -> None:
    (directory / layout.names).write_text("only\ntwo\n")
    with pytest.raises(DataError, match=r"labels must lie in 0\.\.1"):
        open_cifar(layout, directory, "train")
