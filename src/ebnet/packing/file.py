"""Writing the packed file: one safetensors file with a versioned program in its metadata (docs/format.md)."""

import json
from pathlib import Path
from typing import Any, Literal

import numpy as np
from safetensors.numpy import save

from ebnet.errors import ConfigError, NonFiniteError
from ebnet.files import require_folder, write_atomically
from ebnet.models.network import ExpertBinaryNetwork
from ebnet.packing.preprocessing import complete_preprocessing
from ebnet.packing.program import Program

FORMAT = "ebnet"
VERSION = "1"

REALS: dict[str, type[np.floating]] = {"fp32": np.float32, "fp16": np.float16}


def pack(
    model: ExpertBinaryNetwork,
    path: str | Path,
    reals: Literal["fp32", "fp16"] = "fp32",
    preprocessing: dict[str, Any] | None = None,
    labels: list[str] | None = None,
) -> Path:
    """Write a Stage II network as one file for the engine: experts as bits, everything else as `reals`.

    Args:
        model: a network of precision ``binary``; anything else is refused.
        path: the file to write; it appears whole or not at all.
        reals: width of scales, batch norms, gates, shortcuts, stem and classifier.
        preprocessing: ``size, resize, crop, mean, std`` of the pictures it was trained on; what is left out is filled
            in (the size from the stem, mean 0 and std 1).
        labels: names of the classes.

    Example: `ebnet.pack(model, "net.ebn", reals="fp16")`
    """
    path = Path(path)
    content = packed_bytes(model, reals, preprocessing, labels)
    require_folder(path)
    write_atomically(path, content)
    return path


def packed_bytes(
    model: ExpertBinaryNetwork,
    reals: str = "fp32",
    preprocessing: dict[str, Any] | None = None,
    labels: list[str] | None = None,
) -> bytes:
    """The content of the packed file."""
    if reals not in REALS:
        raise ConfigError(f"reals={reals!r}: expected one of {', '.join(REALS)}")
    program = Program(model)
    labels = list(labels or [])
    if labels and len(labels) != model.config.num_classes:
        raise ConfigError(f"{len(labels)} labels for {model.config.num_classes} classes")
    tensors = {name: _narrowed(name, array, reals) for name, array in program.reals.items()} | program.bits
    metadata = {
        "format": FORMAT,
        "version": VERSION,
        "program": _compact(program.ops),
        "preprocessing": _compact(complete_preprocessing(preprocessing, model.config)),
        "labels": _compact(labels),
        "network": _compact(model.config.to_dict()),
    }
    return save({name: np.ascontiguousarray(array) for name, array in tensors.items()}, metadata)


def _narrowed(name: str, array: np.ndarray, reals: str) -> np.ndarray:
    """The array in the file's width; a number that becomes infinite is an error, never an infinity."""
    if not np.isfinite(array).all():
        raise NonFiniteError(f"{name} holds NaN or infinity; the network is damaged")
    with np.errstate(over="ignore"):
        narrow = array.astype(REALS[reals])
    if not np.isfinite(narrow).all():
        worst = np.abs(array).max()
        wider = "; use reals='fp32'" if reals == "fp16" else ""
        raise NonFiniteError(f"{name} holds {worst:g}, too large for {reals}{wider}")
    return narrow


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
