"""A recipe made to fit images that nobody has seen before: `data.fit` lets the images decide their size."""

from typing import Any

import numpy as np

from ebnet.data import open_dataset
from ebnet.data.dataset import Dataset
from ebnet.errors import CheckpointError
from ebnet.images import upright_size
from ebnet.packing.preprocessing import complete_preprocessing
from ebnet.packing.source import open_packable
from ebnet.recipe.settings import Network, Recipe

SIDES = (32, 48, 64, 96, 128, 160, 192, 224)
SEEN = 200
"""Images that are looked at: their headers tell their size."""

MEMORY_BYTES = 2 << 30
"""Decoded images are kept in memory up to so many bytes; more are decoded again in every epoch."""


def fitted(recipe: Recipe) -> Recipe:
    """The recipe with its sizes chosen; one that does not ask for it, as it is.

    A run that begins with a trained network takes over its structure and the size it sees. Otherwise the side becomes
    the largest of `SIDES` that at least half of the images have, `data.size` at most: larger would only blow up pixels.
    Images of 48 pixels and less get the stem that keeps their resolution. A batch is at most an eighth of the images,
    so that an epoch has some steps.
    """
    if not recipe.data.fit:
        return recipe
    for name in recipe.stages:
        if (start := recipe.table(name).start) is not None:
            return _like_network(recipe, start)
    images = open_dataset(recipe.data.name, recipe.data.root)
    shorter = float(np.median(shorter_sides(images)))
    fitting = [side for side in SIDES if side <= min(shorter, recipe.data.size)]
    size = fitting[-1] if fitting else SIDES[0]
    return recipe.changed(
        {
            "data.fit": False,
            "data.size": size,
            **_kept(recipe, images, size + size // 8),
            "network.stem": "cifar" if size <= 48 else "imagenet",
        }
    )


def _like_network(recipe: Recipe, start: str) -> Recipe:
    """Sizes and structure of the network that the run begins with."""
    source = open_packable(start)
    seen = complete_preprocessing(source.preprocessing, source.model.config)
    images = open_dataset(recipe.data.name, recipe.data.root)
    if images.channels != seen["in_channels"]:
        raise CheckpointError(
            f"{start} sees images of {seen['in_channels']} channels, and those of {recipe.data.root} have "
            f"{images.channels}; begin with a network of as many"
        )
    size, whole = seen["size"], round(seen["size"] * seen["resize"] / seen["crop"])
    structure = source.model.config.to_dict()
    return recipe.changed(
        {
            "data.fit": False,
            "data.size": size,
            "data.mean": seen["mean"],
            "data.std": seen["std"],
            **_kept(recipe, images, whole),
            **{f"network.{key}": value for key, value in structure.items() if key in Network.model_fields},
        }
    )


def _kept(recipe: Recipe, images: Dataset, side: int) -> dict[str, Any]:
    """How images are kept whose shorter side becomes `side`, and the batches they make."""
    in_memory = len(images) * side * side * images.channels <= MEMORY_BYTES
    return {
        "data.resize": side,
        "data.in_memory": in_memory,
        **({"data.memory_side": side} if in_memory else {"data.workers": 2}),
        "schedule.batch_size": max(1, min(recipe.schedule.batch_size, len(images) // 8)),
    }


def shorter_sides(images: Dataset) -> list[int]:
    """Of some images spread over the set."""
    sides = []
    for index in np.linspace(0, len(images) - 1, min(SEEN, len(images))).astype(int).tolist():
        with images.naming(index):
            sides.append(min(upright_size(images.open(index))))
    return sides
