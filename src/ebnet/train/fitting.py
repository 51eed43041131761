"""A recipe made to fit images that nobody has seen before: `data.fit` lets the images decide their size."""

import numpy as np

from ebnet.data import open_dataset
from ebnet.data.dataset import Dataset
from ebnet.images import upright_size
from ebnet.recipe.settings import Recipe

SIDES = (32, 48, 64, 96, 128, 160, 192, 224)
SEEN = 200
"""Images that are looked at: their headers tell their size."""

MEMORY_BYTES = 2 << 30
"""Decoded images are kept in memory up to so many bytes; more are decoded again in every epoch."""


def fitted(recipe: Recipe) -> Recipe:
    """The recipe with its sizes chosen; one that does not ask for it, as it is.

    The side becomes the largest of `SIDES` that at least half of the images have, `data.size` at most: larger would
    only blow up pixels. Images of 48 pixels and less get the stem that keeps their resolution. A batch is at most an
    eighth of the images, so that an epoch has some steps.
    """
    if not recipe.data.fit:
        return recipe
    images = open_dataset(recipe.data.name, recipe.data.root)
    shorter = float(np.median(shorter_sides(images)))
    fitting = [side for side in SIDES if side <= min(shorter, recipe.data.size)]
    size = fitting[-1] if fitting else SIDES[0]
    kept = size + size // 8
    in_memory = len(images) * kept * kept * images.channels <= MEMORY_BYTES
    return recipe.changed(
        {
            "data.fit": False,
            "data.size": size,
            "data.resize": kept,
            "data.in_memory": in_memory,
            **({"data.memory_side": kept} if in_memory else {"data.workers": 2}),
            "network.stem": "cifar" if size <= 48 else "imagenet",
            "schedule.batch_size": max(1, min(recipe.schedule.batch_size, len(images) // 8)),
        }
    )


def shorter_sides(images: Dataset) -> list[int]:
    """Of some images spread over the set."""
    sides = []
    for index in np.linspace(0, len(images) - 1, min(SEEN, len(images))).astype(int).tolist():
        with images.naming(index):
            sides.append(min(upright_size(images.open(index))))
    return sides
