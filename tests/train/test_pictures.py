"""Some of a set's training images, whatever kind of set it is."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ebnet.errors import ConfigError
from ebnet.train.pictures import Pictures
from tests.train.tiny import tiny


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    """Images that are grey as their number among all of their split."""
    for split, each in (("train", 8), ("val", 2)):
        for number in range(3 * each):
            path = tmp_path / split / f"class{number // each}" / f"{number:02}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("L", (8, 8), number).save(path)
    return tmp_path


@pytest.mark.parametrize("in_memory", [True, False])
def test_some_of_the_training_images(folders: Path, in_memory: bool) -> None:
    changes = {"data.name": "folder", "data.root": str(folders), "data.in_memory": in_memory, "data.images": 6}
    opened = Pictures.open(tiny().changed(changes).data)
    assert len(opened.val) == 6
    assert opened.train.labels.tolist() == [0, 0, 1, 1, 2, 2]
    greys = [int(opened.train.image(index).max()) for index in range(6)]
    assert greys == np.linspace(0, 23, 6).round().tolist()


def test_more_than_there_are_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"data.images = 1001, but generated has 1000 training images"):
        Pictures.open(tiny().changed({"data.images": 1001}).data)
