"""A run that trains in seconds, its packed file and its bench: what reports, pages and documents are tested on."""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from ebnet.data import ArrayDataset

SETTINGS = {
    "network.arch": "1111-0.25-1:1:1:1",
    "network.experts": 3,
    "schedule.epochs": 2,
    "schedule.batch_size": 32,
    "schedule.warmup_epochs": 0,
    "schedule.milestones": [1],
}


class TinyRun(NamedTuple):
    run: Path
    packed: Path


def some_digits(count: int, split: str) -> "ArrayDataset":
    """Real digits of all classes."""
    from ebnet.data import ArrayDataset, open_dataset

    whole = open_dataset("mnist5k", split=split)
    assert isinstance(whole, ArrayDataset)
    every = len(whole) // count
    images, labels = whole.images[::every][:count], whole.labels[::every][:count]
    return ArrayDataset(whole.name, split, images, labels, whole.classes, whole.statistics)


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory: pytest.TempPathFactory) -> TinyRun:
    from ebnet.packing.file import pack
    from ebnet.packing.source import open_packable
    from ebnet.train import train

    directory = tmp_path_factory.mktemp("tiny")
    train("demo", directory / "run", overrides=SETTINGS, datasets=(some_digits(200, "train"), some_digits(100, "val")))
    source = open_packable(directory / "run")
    packed = pack(source.model, directory / "net.ebn", "fp32", source.preprocessing, source.labels)
    return TinyRun(directory / "run", packed)
