import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from ebnet.data import CentreCrop, Dataset, Loader, Normalise, PadCrop, RandomResizedCrop, open_dataset, open_generated
from ebnet.data.transforms import Transform
from ebnet.errors import ConfigError, DataError

Batches = list[tuple[torch.Tensor, torch.Tensor]]


def same(a: Batches, b: Batches) -> bool:
    pairs = zip(a, b, strict=True)
    return all(torch.equal(x[0], y[0]) and torch.equal(x[1], y[1]) for x, y in pairs)


@pytest.fixture(params=["generated", "folder", "webdataset"])
def dataset(request: pytest.FixtureRequest) -> Dataset:
    if request.param == "generated":
        return open_generated(count=22, num_classes=3, side=16)
    root = request.getfixturevalue("folder" if request.param == "folder" else "shards")
    return open_dataset(request.param, root)


@pytest.mark.parametrize("transform", [RandomResizedCrop(16), PadCrop(16)], ids=["resized", "pad"])
def test_workers_and_restarts_change_nothing(dataset: Dataset, transform: Transform) -> None:
    plain = Loader(dataset, transform, 4, seed=5, shuffle=True)
    whole = list(plain.epoch(2))
    assert len(whole) == len(plain)
    assert same(whole, list(Loader(dataset, transform, 4, seed=5, shuffle=True, workers=2).epoch(2)))
    assert same(whole[3:], list(plain.epoch(2, start_batch=3)))
    assert list(plain.epoch(2, start_batch=len(plain))) == []


def test_epochs_and_seeds_differ_in_order_and_augmentation(dataset: Dataset) -> None:
    first = list(Loader(dataset, RandomResizedCrop(16), 4, seed=5, shuffle=True).epoch(0))
    assert not same(first, list(Loader(dataset, RandomResizedCrop(16), 4, seed=5, shuffle=True).epoch(1)))
    assert not same(first, list(Loader(dataset, RandomResizedCrop(16), 4, seed=6, shuffle=True).epoch(0)))
    fixed = Loader(dataset, RandomResizedCrop(16), 4, seed=5)
    a, b = next(fixed.epoch(0)), next(fixed.epoch(1))
    assert torch.equal(a[1], b[1])
    assert not torch.equal(a[0], b[0])


@pytest.mark.parametrize("world_size", [2, 3])
@pytest.mark.parametrize("drop_last", [True, False])
def test_ranks_together_see_what_one_process_sees(dataset: Dataset, world_size: int, drop_last: bool) -> None:
    alone = Loader(dataset, PadCrop(16), 6, seed=1, shuffle=True, drop_last=drop_last)
    ranks = [
        Loader(dataset, PadCrop(16), 6, seed=1, shuffle=True, rank=r, world_size=world_size, drop_last=drop_last)
        for r in range(world_size)
    ]
    joined = []
    for parts in zip(*(loader.epoch(0) for loader in ranks), strict=True):
        if drop_last:
            assert {len(labels) for _, labels in parts} == {6 // world_size}
        joined.append((torch.cat([p[0] for p in parts]), torch.cat([p[1] for p in parts])))
    assert same(joined, list(alone.epoch(0)))
    assert {len(loader) for loader in ranks} == {len(alone)}


def test_an_epoch_shows_every_picture_once(dataset: Dataset) -> None:
    loader = Loader(dataset, CentreCrop(16), 5, shuffle=True)
    assert sorted(np.concatenate(loader.indices(0)).tolist()) == list(range(len(dataset)))
    assert len(loader) == -(-len(dataset) // 5)
    assert len(Loader(dataset, CentreCrop(16), 5, drop_last=True)) == len(dataset) // 5


def test_batches_are_what_they_say() -> None:
    data = open_generated(count=8, side=16, channels=1)
    raw, labels = next(Loader(data, CentreCrop(16), 8).epoch(0))
    assert raw.dtype == torch.uint8
    assert np.array_equal(raw.numpy(), data.images)
    assert labels.dtype == torch.int64
    assert labels.tolist() == data.labels.tolist()
    images, _ = next(Loader(data, CentreCrop(16), 8, normalise=Normalise((0.5,), (0.25,))).epoch(0))
    assert images.dtype == torch.float32
    torch.testing.assert_close(images, (raw.permute(0, 3, 1, 2) / 255 - 0.5) / 0.25)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_broken_picture_is_named(folder: Path, workers: int) -> None:
    broken = folder / "train" / "bee" / "bee_3.jpg"
    broken.write_bytes(broken.read_bytes()[:500])
    loader = Loader(open_dataset("folder", folder), RandomResizedCrop(16), 4, workers=workers)
    with pytest.raises(DataError, match=r"bee_3\.jpg: cannot be read as an image .*; replace or remove it") as caught:
        list(loader.epoch(0))
    assert "\n" not in str(caught.value)


def test_impossible_settings_are_refused() -> None:
    data = open_generated(count=10)
    with pytest.raises(ConfigError, match="batch_size=5 must be a positive multiple of the 2 processes"):
        Loader(data, CentreCrop(32), 5, world_size=2)
    with pytest.raises(ConfigError, match="rank=2"):
        Loader(data, CentreCrop(32), 4, rank=2, world_size=2)
    with pytest.raises(ConfigError, match="workers=-1"):
        Loader(data, CentreCrop(32), 4, workers=-1)
    with pytest.raises(DataError, match="has 10 images, fewer than one batch of 11"):
        Loader(data, CentreCrop(32), 11, drop_last=True)


_OUTLIVES_SIGNALS = """
import signal, sys
from ebnet.data import Loader, RandomResizedCrop, open_dataset
done = []
signal.signal(signal.SIGINT, lambda *_: None)
signal.signal(signal.SIGTERM, lambda *_: None)
signal.signal(signal.SIGUSR1, lambda *_: done.append(True))
loader = Loader(open_dataset("folder", sys.argv[1]), RandomResizedCrop(64), 2, shuffle=True, workers=2)
epoch = 0
while not done:
    for batch, _ in enumerate(loader.epoch(epoch)):
        if epoch == batch == 0:
            print("under way", flush=True)
    epoch += 1
print("saved", flush=True)
"""


def test_signals_to_the_group_leave_the_workers_to_the_parent(folder: Path) -> None:
    """A trainer that notes Ctrl-C or SIGTERM and finishes its epoch must not lose its workers, and leaves none behind.

    Signals come at all moments of several epochs, the start of the workers included. The workers inherit the pipe, so
    that it ends only when the last of them is gone.
    """
    command = [sys.executable, "-c", _OUTLIVES_SIGNALS, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "under way\n"
        for _ in range(100):
            for number in (signal.SIGINT, signal.SIGTERM):
                os.killpg(run.pid, number)
            time.sleep(0.005)
        run.send_signal(signal.SIGUSR1)
        out, errors = run.communicate(timeout=60)
    assert "Traceback" not in errors
    assert out == "saved\n"
    assert run.returncode == 0


def _children() -> set[str]:
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


def test_workers_go_when_an_epoch_is_left_early(folder: Path) -> None:
    before = _children()
    batches = Loader(open_dataset("folder", folder), RandomResizedCrop(16), 2, workers=2).epoch(0)
    next(batches)
    workers = _children() - before
    assert len(workers) >= 2
    batches.close()
    deadline = time.monotonic() + 20
    while workers & _children() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not workers & _children()
