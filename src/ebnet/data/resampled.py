"""Pictures of a data set drawn with replacement, or some of them."""

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ebnet.data.dataset import ArrayDataset, Dataset, Labels


def resampled(data: Dataset, rows: NDArray[np.int64]) -> Dataset:
    """The pictures at these positions, perhaps some of them several times, as a data set."""
    if isinstance(data, ArrayDataset):
        return ArrayDataset(data.name, data.split, data.images[rows], data.labels[rows], data.classes, data.statistics)
    return _Resampled(data, rows)


class _Resampled(Dataset):
    def __init__(self, data: Dataset, rows: NDArray[np.int64]) -> None:
        self.data, self.rows = data, rows
        self.name, self.split, self.classes = data.name, data.split, data.classes
        self.channels, self.statistics = data.channels, data.statistics

    @property
    def labels(self) -> Labels:
        return self.data.labels[self.rows]

    def open(self, index: int) -> Image.Image:
        return self.data.open(int(self.rows[index]))

    def source(self, index: int) -> str:
        return self.data.source(int(self.rows[index]))
