"""Images that make a network show itself: where no photographs are at hand, noise falls into one class.

Patterns of all scales and contrasts are tried; those that reach classes and experts which few others reached are kept,
and mixed with each other for the next round. The engine alone is asked, so that this takes seconds.
"""

import numpy as np

from ebnet.runtime.engine import Engine

ROUNDS, AT_ONCE = 6, 16


def grown_images(engine: Engine, count: int) -> np.ndarray:
    """`count` normalised NCHW float32 images of the file's size, chosen for the classes and experts they reach."""
    rules = engine.preprocessing
    rng = np.random.default_rng(0)
    shape = (rules.in_channels, rules.size, rules.size)
    images = np.stack([_pattern(rng, shape) for _ in range(2 * count)])
    marks = _marks(engine, images)
    for _ in range(ROUNDS):
        kept = _choose(marks, count)
        children = np.stack([_mixed(rng, images[kept], shape) for _ in range(count)])
        images = np.concatenate((images[kept], children))
        marks = np.concatenate((marks[kept], _marks(engine, children)))
    return np.ascontiguousarray(images[_choose(marks, count)])


def reached(engine: Engine, images: np.ndarray) -> tuple[int, int]:
    """How many classes, and how many experts of all layers, images reach."""
    marks = _marks(engine, images)
    classes = len(np.unique(marks[:, 0]))
    return classes, sum(len(np.unique(column)) for column in marks[:, 1:].T)


def _marks(engine: Engine, images: np.ndarray) -> np.ndarray:
    """Per image its class and each layer's expert."""
    rows = []
    for first in range(0, len(images), AT_ONCE):
        logits, experts = engine.run(images[first : first + AT_ONCE])
        rows.append(np.concatenate((logits.argmax(1)[:, None], experts.T), axis=1))
    return np.concatenate(rows)


def _choose(marks: np.ndarray, count: int) -> np.ndarray:
    """`count` rows, each next one the one whose marks the rows before it have seen least often."""
    seen = [dict.fromkeys(np.unique(column).tolist(), 0) for column in marks.T]
    left, chosen = list(range(len(marks))), []
    for _ in range(count):
        worth = [sum(2.0 ** -seen[c][mark] for c, mark in enumerate(marks[row].tolist())) for row in left]
        best = left.pop(int(np.argmax(worth)))
        chosen.append(best)
        for c, mark in enumerate(marks[best].tolist()):
            seen[c][mark] += 1
    return np.array(chosen)


def _pattern(rng: np.random.Generator, shape: tuple[int, int, int]) -> np.ndarray:
    """Noise of one scale on a colour, at some contrast."""
    channels, height, width = shape
    cell = int(2 ** rng.uniform(0, np.log2(max(height, 2))))
    coarse = rng.standard_normal((channels, -(-height // cell), -(-width // cell)))
    noise = coarse.repeat(cell, axis=1).repeat(cell, axis=2)[:, :height, :width]
    colour = rng.standard_normal((channels, 1, 1))
    return (2 ** rng.uniform(-2, 1) * noise + rng.uniform(0, 2) * colour).astype(np.float32)


def _mixed(rng: np.random.Generator, parents: np.ndarray, shape: tuple[int, int, int]) -> np.ndarray:
    """Two parents blended, or a part of one pasted into the other, with a little fresh noise."""
    one, other = parents[rng.integers(len(parents))], parents[rng.integers(len(parents))]
    if rng.random() < 0.5:
        part = rng.uniform(0.2, 0.8)
        child = part * one + (1 - part) * other
    else:
        child = one.copy()
        top, left = rng.integers(shape[1]), rng.integers(shape[2])
        child[:, top:, left:] = other[:, top:, left:]
    return (child + 0.3 * _pattern(rng, shape)).astype(np.float32)
