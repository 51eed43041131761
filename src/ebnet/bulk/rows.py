"""Stored images to rows of a table: the most probable classes, or why an image could not be read."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from ebnet.bulk.sources import Stored, shard_images
from ebnet.errors import EbnetError
from ebnet.runtime.engine import Engine, load

Row = dict[str, Any]

BATCH = 32
"""Images of one call of the engine."""


def column_types(top: int) -> dict[str, type]:
    """The columns of a table of the `top` classes of each image, and what they hold."""
    names = ["label", "probability"]
    names += [f"{name}_{place}" for place in range(2, top + 1) for name in ("label", "probability")]
    return {name: float if name.startswith("probability") else str for name in ["image", *names, "error"]}


def rows_of(engine: Engine, images: Sequence[Stored], top: int) -> list[Row]:
    """A row for every image; one that cannot be read has its `error` and no classes."""
    rows: list[Row] = [dict.fromkeys(column_types(top)) | {"image": image.name} for image in images]
    for begin in range(0, len(images), BATCH):
        readable: list[tuple[Row, np.ndarray]] = []
        for row, image in zip(rows[begin : begin + BATCH], images[begin : begin + BATCH], strict=True):
            try:
                readable.append((row, engine.preprocessing.decode(image.open(), image.name)))
            except (EbnetError, OSError) as error:
                row["error"] = str(error)
        if readable:
            logits = engine(np.stack([pixels for _, pixels in readable]))
            for (row, _), found in zip(readable, engine.predictions(logits, top), strict=True):
                for place, (label, probability) in enumerate(zip(found.labels, found.probabilities, strict=True), 1):
                    suffix = "" if place == 1 else f"_{place}"
                    row[f"label{suffix}"], row[f"probability{suffix}"] = label, probability
    return rows


def predict_shard(network: str | os.PathLike[str], shard: str | os.PathLike[str], top: int = 1) -> list[Row]:
    """Rows for the images of one tar shard: a task of its own for whatever spreads tasks over machines."""
    return rows_of(load(network), shard_images(shard), top)
