"""Batches for training and validation, the same ones whoever asks and whenever.

The order of an epoch is a function of (seed, epoch), a picture's augmentation of (seed, epoch, index). So batch k of an
epoch can be made without making the ones before it (restarts cost nothing), and neither the number of worker processes
nor the number of ranks changes what is in it.
"""

import os
import signal
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ebnet.data.dataset import ArrayDataset, Dataset, Labels
from ebnet.data.randomness import uniforms
from ebnet.data.transforms import Images, Normalise, Transform
from ebnet.errors import ConfigError, DataError, EbnetError

if TYPE_CHECKING:
    import torch

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Loader:
    """Cuts epochs of a data set into batches.

    `batch_size` is that of the whole job: of each batch, rank r of `world_size` gets the r-th contiguous part, so the
    union over ranks is what one process would see. Training wants `drop_last=True` (each part equally large); without
    it the last batch is short and a rank's part of it may be empty. With `workers` > 0, pictures are decoded in that
    many processes; sets in memory need none. `normalise=None` yields the raw uint8 [n, size, size, channels], to be
    normalised on an accelerator.
    """

    def __init__(
        self,
        dataset: Dataset,
        transform: Transform,
        batch_size: int,
        seed: int = 0,
        shuffle: bool = False,
        workers: int = 0,
        rank: int = 0,
        world_size: int = 1,
        drop_last: bool = False,
        normalise: Normalise | None = None,
        channels_last: bool = False,
    ) -> None:
        if batch_size < 1 or batch_size % world_size:
            raise ConfigError(f"batch_size={batch_size} must be a positive multiple of the {world_size} processes")
        if not 0 <= rank < world_size:
            raise ConfigError(f"rank={rank} must lie in 0..{world_size - 1}")
        if workers < 0:
            raise ConfigError(f"workers={workers} must not be negative")
        if len(dataset) < (batch_size if drop_last else 1):
            raise DataError(
                f"{dataset.name} ({dataset.split}) has {len(dataset)} images, fewer than one batch of {batch_size}"
            )
        self.dataset, self.transform, self.batch_size = dataset, transform, batch_size
        self.seed, self.shuffle, self.workers = seed, shuffle, workers
        self.rank, self.world_size, self.drop_last = rank, world_size, drop_last
        self.normalise, self.channels_last = normalise, channels_last

    def __len__(self) -> int:
        """Batches in an epoch."""
        whole, rest = divmod(len(self.dataset), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def indices(self, epoch: int, start_batch: int = 0) -> list[NDArray[np.int64]]:
        """Which pictures this rank gets in each batch from `start_batch` on."""
        total = len(self.dataset)
        order = self.dataset.order(self.seed, epoch) if self.shuffle else np.arange(total)
        parts = []
        for batch in range(start_batch, len(self)):
            whole = order[batch * self.batch_size : (batch + 1) * self.batch_size]
            cuts = [len(whole) * r // self.world_size for r in (self.rank, self.rank + 1)]
            parts.append(whole[cuts[0] : cuts[1]])
        return parts

    def some(self, indices: NDArray[np.int64]) -> tuple[Images, Labels]:
        """Chosen pictures as epoch 0 shows them, before normalisation, made in this process."""
        return _BatchMaker(self.dataset, self.transform, self.seed, 0).make(indices)

    def epoch(self, epoch: int, start_batch: int = 0) -> Generator[tuple["torch.Tensor", "torch.Tensor"], None, None]:
        """(images, labels) of each batch from `start_batch` on: float32 [n, channels, size, size] and int64 [n]."""
        import torch

        for images, labels in self.arrays(epoch, start_batch):
            pixels = torch.from_numpy(images)
            if self.normalise is not None:
                pixels = self.normalise.tensor(pixels, self.channels_last)
            yield pixels, torch.from_numpy(labels)

    def arrays(self, epoch: int, start_batch: int = 0) -> Iterator[tuple[Images, Labels]]:
        """The same batches before normalisation, as numpy arrays: uint8 [n, size, size, channels] and int64 [n]."""
        maker = _BatchMaker(self.dataset, self.transform, self.seed, epoch)
        parts = self.indices(epoch, start_batch)
        if self.workers == 0:
            for part in parts:
                yield maker.make(part)
            return
        from torch.utils.data import DataLoader

        loader: DataLoader[Any] = DataLoader(
            maker,  # type: ignore[arg-type]
            batch_size=None,
            sampler=parts,
            num_workers=min(self.workers, max(1, len(parts))),
            collate_fn=_as_they_are,
            worker_init_fn=_leave_signals_to_the_parent,
        )
        with _held_back():
            batches = iter(loader)  # starts the workers
        for made in batches:
            if isinstance(made, EbnetError):
                raise made
            images, labels = made
            yield images.numpy(), labels.numpy()


class _BatchMaker:
    """What a worker process runs: indices in, one batch of uint8 pictures out."""

    def __init__(self, dataset: Dataset, transform: Transform, seed: int, epoch: int) -> None:
        self.dataset, self.transform, self.seed, self.number = dataset, transform, seed, epoch

    def make(self, indices: NDArray[np.int64]) -> tuple[Images, Labels]:
        data, transform = self.dataset, self.transform
        draws = uniforms(self.seed, self.number, indices, transform.draws)
        labels = data.labels[indices]
        if isinstance(data, ArrayDataset):
            return transform.chosen(data.images, indices, draws), labels
        images = np.empty((len(indices), transform.size, transform.size, data.channels), np.uint8)
        for row, index in enumerate(indices.tolist()):
            with data.naming(index):
                images[row] = transform.picture(data.open(index), draws[row])
        return images, labels

    def __getitem__(self, indices: NDArray[np.int64]) -> "tuple[torch.Tensor, torch.Tensor] | EbnetError":
        import torch

        try:
            images, labels = self.make(indices)
            return torch.from_numpy(images), torch.from_numpy(labels)  # tensors travel by shared memory, not by pipe
        except EbnetError as error:  # handed over as a value: raised there it would arrive wrapped in a traceback
            return error


def _as_they_are(batch: object) -> object:
    return batch


@contextmanager
def _held_back() -> Iterator[None]:
    """Stop signals wait until the block is over; processes forked in it begin with them held back."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _leave_signals_to_the_parent(worker: int) -> None:
    """Ctrl-C and a SIGTERM to the process group reach only the parent, which ends its workers when it is done saving.

    In a session of its own a worker is out of their reach; it still goes when its parent does. What came between its
    birth and this moment was held back, and is dropped by ignoring it once; from then on SIGTERM ends it as usual.
    """
    os.setsid()
    for number in _STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP_SIGNALS)
