"""What every data set offers, and the kind that lies in memory as one array."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ebnet.data.randomness import permutation
from ebnet.data.transforms import CentreCrop, Images, as_picture
from ebnet.errors import DataError
from ebnet.images import whole

Split = Literal["train", "val"]
Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Statistics:
    """Per-channel mean and standard deviation of pixels in [0, 1], what `Normalise` subtracts and divides by."""

    mean: tuple[float, ...]
    std: tuple[float, ...]


IMAGENET_STATISTICS = Statistics((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


class Dataset(ABC):
    """Labelled pictures, addressed by position."""

    name: str
    split: Split
    classes: list[str]
    channels: int
    statistics: Statistics

    @property
    def num_classes(self) -> int:
        return len(self.classes)

    @property
    @abstractmethod
    def labels(self) -> Labels:
        """The class of every picture."""

    @abstractmethod
    def open(self, index: int) -> Image.Image:
        """The picture, possibly not decoded yet: a transform may ask the decoder for a smaller one first."""

    @abstractmethod
    def source(self, index: int) -> str:
        """Where the picture comes from, in words that let the user find it."""

    def __len__(self) -> int:
        return len(self.labels)

    def label(self, index: int) -> int:
        return int(self.labels[index])

    def image(self, index: int) -> Images:
        """The decoded picture, [height, width, channels]."""
        with self.naming(index):
            return whole(self.open(index), self.channels)

    def naming(self, index: int) -> "_Naming":
        """A context in which a decoder's complaint becomes a DataError that names the broken picture."""
        return _Naming(self.source(index))

    def order(self, seed: int, epoch: int) -> NDArray[np.int64]:
        """The shuffled order of an epoch."""
        return permutation(seed, epoch, len(self))

    def in_memory(self, side: int | None = None, workers: int = 0, limit: int = 4 << 30) -> "ArrayDataset":
        """Decode every picture once, to a centred square of `side` pixels: no decoding during training.

        A set that lies in memory anyway is returned as it is when no side is given. `workers` processes decode (0: this
        one). Refuses more than `limit` bytes.
        """
        from ebnet.data.loader import Loader

        if side is None:
            raise DataError(f"the images of {self.name} differ in size: say in_memory(side=...)")
        need = len(self) * side * side * self.channels
        if need > limit:
            raise DataError(
                f"{self.name} ({self.split}) at {side} px needs {need / 2**30:.1f} GiB of memory, "
                f"the limit is {limit / 2**30:.1f} GiB: use a smaller side, or stream it with worker processes"
            )
        images = np.empty((len(self), side, side, self.channels), np.uint8)
        loader = Loader(self, CentreCrop(side), batch_size=256, workers=workers)
        for batch, (decoded, _) in enumerate(loader.arrays(0)):
            images[batch * loader.batch_size :][: len(decoded)] = decoded
        return ArrayDataset(self.name, self.split, images, self.labels, self.classes, self.statistics)


class ArrayDataset(Dataset):
    """A whole set as one uint8 array [count, height, width, channels]: the fastest kind, for small pictures."""

    def __init__(
        self,
        name: str,
        split: Split,
        images: Images,
        labels: Labels,
        classes: Sequence[str],
        statistics: Statistics,
    ) -> None:
        self.name, self.split, self.classes, self.statistics = name, split, list(classes), statistics
        self.images, self._labels = images, labels.astype(np.int64)
        self.channels = images.shape[3]
        if len(labels) and not 0 <= self._labels.min() <= self._labels.max() < len(self.classes):
            raise DataError(f"{name} ({split}): labels must lie in 0..{len(self.classes) - 1}")

    @property
    def labels(self) -> Labels:
        return self._labels

    def open(self, index: int) -> Image.Image:
        return as_picture(self.images[index])

    def source(self, index: int) -> str:
        return f"{self.name} ({self.split}) image {index}"

    def in_memory(self, side: int | None = None, workers: int = 0, limit: int = 4 << 30) -> "ArrayDataset":
        return self if side in (None, self.images.shape[1]) else super().in_memory(side, workers, limit)


class _Naming:
    def __init__(self, source: str) -> None:
        self.source = source

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        # What Pillow raises for damaged files: OSError (truncated, unknown), SyntaxError (bad PNG chunks), ValueError.
        if isinstance(error, OSError | SyntaxError | ValueError | Image.DecompressionBombError):
            raise DataError(f"{self.source}: cannot be read as an image ({error}); replace or remove it") from error
