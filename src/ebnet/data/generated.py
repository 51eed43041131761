"""Pictures made up on the spot: stripes whose direction is the class. For tests and first steps; needs no files.

Each picture has a random phase, frequency, contrast, tint and pixel noise, so that a small network learns the classes
within seconds but must look at the picture to do so.
"""

import numpy as np

from ebnet.data.dataset import ArrayDataset, Split, Statistics
from ebnet.data.randomness import uniforms

_COUNT = {"train": 1000, "val": 200}
_SEED = {"train": 1, "val": 2}


def open_generated(
    split: Split = "train", count: int | None = None, num_classes: int = 10, side: int = 32, channels: int = 3
) -> ArrayDataset:
    """`count` pictures (1,000 for training, 200 for validation unless told), the classes in turn."""
    total = _COUNT[split] if count is None else count
    index = np.arange(total)
    labels = index % num_classes
    phase, frequency, contrast, *tint = uniforms(_SEED[split], 0, index, 3 + channels).T[:, :, None, None]
    angle = np.pi * labels[:, None, None] / num_classes
    y, x = np.mgrid[0:side, 0:side] / side
    along = np.cos(angle) * x + np.sin(angle) * y
    stripes = (0.5 + 0.5 * contrast) * np.sin(2 * np.pi * ((2 + 2 * frequency) * along + phase))
    noise = uniforms(_SEED[split], 1, index, side * side).reshape(total, side, side) - 0.5
    pictures = np.stack([0.5 + (0.2 + 0.2 * t) * (stripes + noise) for t in tint], axis=-1)
    return ArrayDataset(
        "generated",
        split,
        (pictures.clip(0, 1) * 255).round().astype(np.uint8),
        labels,
        [f"{180 * c / num_classes:g} degrees" for c in range(num_classes)],
        Statistics((0.5,) * channels, (0.19,) * channels),
    )
