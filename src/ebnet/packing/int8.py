"""Real layers in int8: whole-number weights, and a code for the bytes that each layer reads (docs/format.md).

A weight is ``q / 64`` of its output channel's largest, q from -64 to 64: AVX2 adds two products of bytes in 16 bits,
and 2 * 255 * 64 is the most that fits there. A layer reads the image as its pixels, which loses nothing, and anything
else as bytes ``real / step + zero``, rounded. Layers that are joined by nothing but maxima and concatenations share a
code, so that what lies between them is kept as bytes too. Small layers stay real (`ebnet.models.small_layers`).
"""

import math
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ebnet.errors import ConfigError
from ebnet.models.small_layers import worth_int8
from ebnet.runtime.engine import load

LARGEST_WEIGHT = 64
MOST_INPUTS = 1 << 17
"""Of one sum: 255 * 64 times as many is below 2^31."""

PIXELS = "pixels"
Op = dict[str, Any]
Tensors = dict[str, np.ndarray]
Codes = dict[int, "Code | None"]
"""Of each op that is int8; None for one that reads the image, whose bytes are its pixels."""

_BATCH = 4
_KEPT = 1 << 14
"""Numbers of a value that are kept from each batch."""


@dataclass(frozen=True)
class Code:
    """What a byte stands for: ``(byte - zero) * step``."""

    step: float
    zero: int


def quantized(
    ops: list[Op], reals: Tensors, preprocessing: dict[str, Any], codes: Codes
) -> tuple[list[Op], Tensors, Tensors]:
    """The program with int8 layers: its ops, its reals, and the whole-number weights.

    Args:
        ops: of a program whose layers are real.
        reals: its tensors but for bits, float64.
        preprocessing: mean and std of the pixels.
        codes: of the layers that are to be int8.
    """
    ops, reals, weights = [dict(op) for op in ops], dict(reals), {}
    for index, code in codes.items():
        op = ops[index]
        name = op["name"]
        weight = reals.pop(f"{name}.weight")
        if code is None:
            op["int8"] = PIXELS
            per_channel = (1, -1) + (1,) * (weight.ndim - 2)
            weight = weight / np.asarray(preprocessing["std"]).reshape(per_channel)
        else:
            op["int8"] = [code.step, code.zero]
        largest = np.abs(weight).max(axis=tuple(range(1, weight.ndim)))
        whole = np.rint(
            weight / np.where(largest > 0, largest, 1).reshape(-1, *(1,) * (weight.ndim - 1)) * LARGEST_WEIGHT
        )
        weights[f"{name}.weight"] = whole.astype(np.int8)
        if op["op"] == "linear":
            reals[f"{name}.scale"] = largest
            continue
        scale, shift = reals[f"{name}.norm"]
        scale = scale * largest
        if code is None:
            shift = shift + scale * _off_centre(whole, preprocessing["mean"])
        reals[f"{name}.norm"] = np.stack((scale, shift))
    return ops, reals, weights


def calibrated(content: bytes, ops: list[Op], layers: list[int], images: Any) -> Codes:
    """A code for each of the layers, from what it reads of the images.

    Args:
        content: the packed file with real layers.
        ops: its program.
        layers: the ops that are to be int8.
        images: as the engine takes them: uint8 [batch, height, width, channels] or normalised float32 NCHW.
    """
    images = np.asarray(images)
    if len(images) == 0:
        raise ConfigError("calibrate holds no images; give at least one (a few hundred are better)")
    joined = _joined(ops)
    readers: dict[int, list[int]] = {}
    for index in layers:
        if ops[index]["in"] != [0]:
            readers.setdefault(joined[ops[index]["in"][0]], []).append(index)
    kept: dict[int, list[np.ndarray]] = {root: [] for root in readers}
    generator = np.random.default_rng(0)
    for values in _traced(content, images):
        for root, group in readers.items():
            for value in sorted({ops[index]["in"][0] for index in group}):
                flat = values[value - 1].reshape(-1)
                kept[root] += [generator.choice(flat, min(_KEPT, flat.size)), np.array([flat.min(), flat.max()])]
    codes: Codes = dict.fromkeys(layers)
    return codes | {index: code_of(np.concatenate(kept[root])) for root, group in readers.items() for index in group}


def code_of(reals: np.ndarray) -> Code:
    """The code whose bytes stand for these reals with the least squared error; 0 is one of what they stand for."""
    low, high = min(float(reals.min()), 0.0), max(float(reals.max()), 0.0)
    if high == low:
        return Code(1.0, 0)
    best, least = Code(1.0, 0), math.inf
    for part in np.linspace(1.0, 0.3, 36):
        step = float(np.float32(part * (high - low) / 255))
        zero = min(255, max(0, round(-part * low / step)))
        coded = (np.clip(np.rint(reals / step) + zero, 0, 255) - zero) * step
        error = float(np.square(coded - reals).mean())
        if error < least:
            best, least = Code(step, zero), error
    return best


def zeros_of(mean: list[float]) -> np.ndarray:
    """The pixel of each channel that stands for 0: the nearest to its mean."""
    return np.rint(np.clip(255 * np.asarray(mean, np.float32), 0, 255)).astype(np.float64)


def _off_centre(whole: np.ndarray, mean: list[float]) -> np.ndarray:
    """What a layer's weights make of the difference between those pixels and the mean itself."""
    apart = (zeros_of(mean) - 255 * np.asarray(mean)) / 255
    return (whole / LARGEST_WEIGHT).sum(axis=tuple(range(2, whole.ndim))) @ apart


def int8_layers(ops: list[Op], reals: Tensors, side: int) -> list[int]:
    """The ops that are int8 in a file for images of that side: convolutions and linear maps that are worth it. One with
    sums that could overflow stays real."""
    found = []
    heights = [side]
    for index, op in enumerate(ops):
        heights.append(_height(op, heights[op["in"][0]]))
        if op["op"] not in ("conv", "linear"):
            continue
        weight = reals[f"{op['name']}.weight"]
        if math.prod(weight.shape[1:]) <= MOST_INPUTS and worth_int8(weight.size, weight.size * heights[-1] ** 2):
            found.append(index)
    return found


def _height(op: Op, height: int) -> int:
    """Of what an op makes of a square map, by torch's rules."""
    if op["op"] in ("global_pool", "linear"):
        return 1
    if op["op"] in ("concat", "sum"):
        return height
    stride, pad = op.get("stride", 1), op.get("pad", 0)
    room = height + 2 * pad - op.get("dilation", 1) * (op["kernel"] - 1) - 1
    if not op.get("ceil"):
        return room // stride + 1
    windows = -(-room // stride) + 1
    return windows if (windows - 1) * stride < height + pad else windows - 1


def _joined(ops: list[Op]) -> list[int]:
    """For each value, the first of those that it is joined to by maxima and concatenations."""
    root = list(range(len(ops) + 1))
    for index, op in enumerate(ops):
        if op["op"] in ("maxpool", "concat"):
            together = {root[value] for value in (*op["in"], index + 1)}
            root = [min(together) if value in together else value for value in root]
    return root


def _traced(content: bytes, images: np.ndarray) -> Iterator[list[np.ndarray]]:
    """What every op makes of the images, a few at a time."""
    with tempfile.TemporaryDirectory(prefix="ebnet-") as folder:
        path = Path(folder) / "real.ebn"
        path.write_bytes(content)
        engine = load(path)
        for first in range(0, len(images), _BATCH):
            yield engine.trace(images[first : first + _BATCH]).values
