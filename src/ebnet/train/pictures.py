"""The data of a recipe, opened: loaders for training and validation, and the normalisation."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ebnet.data import (
    CentreCrop,
    Dataset,
    Loader,
    Normalise,
    PadCrop,
    RandomResizedCrop,
    Split,
    Transform,
    open_dataset,
)
from ebnet.data.resampled import resampled
from ebnet.errors import ConfigError
from ebnet.recipe.settings import Data
from ebnet.train.distributed import rank, world_size

VALIDATION_BATCH = 256


@dataclass(frozen=True)
class Pictures:
    """Both splits of a data set, as a recipe wants them."""

    train: Dataset
    val: Dataset
    settings: Data
    normalise: Normalise

    @classmethod
    def open(cls, settings: Data, datasets: tuple[Dataset, Dataset] | None = None) -> "Pictures":
        """Open what the recipe names, or take data sets that are open already."""
        if datasets is None:
            datasets = (_open(settings, "train"), _open(settings, "val"))
        train, val = datasets
        mean, std = settings.mean or val.statistics.mean, settings.std or val.statistics.std
        if len(mean) != val.channels or len(std) != val.channels:
            raise ConfigError(f"data.mean and data.std need {val.channels} values, one for each channel of {val.name}")
        return cls(train, val, settings, Normalise(mean, std))

    def training(self, batch_size: int, seed: int) -> Loader:
        return Loader(
            self.train,
            self._augmentation(),
            batch_size,
            seed=seed,
            shuffle=True,
            workers=self.settings.workers,
            rank=rank(),
            world_size=world_size(),
            drop_last=True,
        )

    def validation(self) -> Loader:
        return Loader(
            self.val,
            self._centre(),
            VALIDATION_BATCH * world_size(),
            workers=self.settings.workers,
            rank=rank(),
            world_size=world_size(),
        )

    def sample(self, dataset: Dataset, count: int, divided: bool = False) -> tuple[Tensor, Tensor]:
        """Up to `count` images spread evenly over a set, as validation shows them, and their labels.

        Raw, uint8 [n, size, size, channels].

        `divided`: only this process's part of them, equally many for each.
        """
        indices = _spread(len(dataset), min(count, len(dataset)))
        if divided:
            part = max(1, len(indices) // world_size())
            indices = indices[rank() * part : (rank() + 1) * part]
        images, labels = Loader(dataset, self._centre(), batch_size=1).some(indices)
        return torch.from_numpy(images), torch.from_numpy(labels)

    def steps_per_epoch(self, batch_size: int) -> int:
        return len(self.training(batch_size, seed=0))

    def preprocessing(self) -> dict[str, Any]:
        """What a user of the finished network must do to a picture."""
        return {
            "size": self.settings.size,
            "resize": self.settings.resize or self.settings.size,
            "crop": self.settings.size,
            "mean": list(self.normalise.mean),
            "std": list(self.normalise.std),
            "in_channels": self.val.channels,
        }

    def _augmentation(self) -> Transform:
        data = self.settings
        if data.augmentation == "pad-crop":
            return PadCrop(data.size, padding=data.padding, flip=data.flip)
        if data.augmentation == "random-resized-crop":
            return RandomResizedCrop(data.size, scale=data.scale, flip=data.flip)
        return self._centre()

    def _centre(self) -> CentreCrop:
        return CentreCrop(self.settings.size, resize=self.settings.resize)


def _open(settings: Data, split: Split) -> Dataset:
    dataset = open_dataset(settings.name, settings.root, split)
    if split == "train" and settings.images is not None:
        if settings.images > len(dataset):
            raise ConfigError(f"data.images = {settings.images}, but {dataset.name} has {len(dataset)} training images")
        dataset = resampled(dataset, _spread(len(dataset), settings.images))
    return dataset.in_memory(settings.memory_side) if settings.in_memory else dataset


def _spread(length: int, count: int) -> NDArray[np.int64]:
    """So many positions, evenly over all: of a set in the order of its classes, equally many of each."""
    return np.linspace(0, length - 1, count).round().astype(np.int64)
