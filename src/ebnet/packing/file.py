"""Writing the packed file: one safetensors file with a versioned program in its metadata (docs/format.md)."""

import json
from pathlib import Path
from typing import Any, Literal

import numpy as np
from safetensors.numpy import save

from ebnet.errors import ConfigError, NonFiniteError
from ebnet.files import require_folder, write_atomically
from ebnet.models.network import ExpertBinaryNetwork
from ebnet.packing.int8 import Tensors, calibrated, int8_layers, quantized
from ebnet.packing.preprocessing import complete_preprocessing
from ebnet.packing.program import Program

FORMAT = "ebnet"
VERSION, INT8_VERSION, UNITS_VERSION, SUMS_VERSION = "1", "2", "3", "4"
"""A file is of the first version that has what is in it, so that older readers read what they can."""
UNITS_FIELDS = {"shift", "after", "act_last", "expert_scales"}
"""Fields of binary ops that the third version brings."""

REALS: dict[str, type[np.floating]] = {"fp32": np.float32, "fp16": np.float16, "int8": np.float16}
"""The width of reals in a file; in one of int8, of those that are not a layer's weights."""


def pack(
    model: ExpertBinaryNetwork,
    path: str | Path,
    reals: Literal["fp32", "fp16", "int8"] = "fp32",
    preprocessing: dict[str, Any] | None = None,
    labels: list[str] | None = None,
    calibrate: Any = None,
) -> Path:
    """Write a Stage II network as one file for the engine: experts as bits, everything else as `reals`.

    Args:
        model: a network of precision ``binary``; anything else is refused.
        path: the file to write; it appears whole or not at all.
        reals: width of scales, batch norms, gates, shortcuts, stem, head and classifier; with ``int8`` the weights of
            the last four are int8, where that saves bytes or time worth having, and all else is fp16.
        preprocessing: ``size, resize, crop, mean, std`` of the pictures it was trained on; what is left out is filled
            in (the size from the stem, mean 0 and std 1).
        labels: names of the classes.
        calibrate: for ``int8``, some hundred images like those it will see, as the engine takes them: uint8
            [batch, height, width, channels] or normalised float32 [batch, channels, height, width].

    Example: `ebnet.pack(model, "net.ebn", reals="fp16")`
    """
    path = Path(path)
    content = packed_bytes(model, reals, preprocessing, labels, calibrate)
    require_folder(path)
    write_atomically(path, content)
    return path


def packed_bytes(
    model: ExpertBinaryNetwork,
    reals: str = "fp32",
    preprocessing: dict[str, Any] | None = None,
    labels: list[str] | None = None,
    calibrate: Any = None,
) -> bytes:
    """The content of the packed file."""
    if reals not in REALS:
        raise ConfigError(f"reals={reals!r}: expected one of {', '.join(REALS)}")
    program = Program(model)
    labels = list(labels or [])
    if labels and len(labels) != model.config.num_classes:
        raise ConfigError(f"{len(labels)} labels for {model.config.num_classes} classes")
    metadata = {
        "format": FORMAT,
        "version": _version(program.ops),
        "program": _compact(program.ops),
        "preprocessing": _compact(complete_preprocessing(preprocessing, model.config)),
        "labels": _compact(labels),
        "network": _compact(model.config.to_dict()),
    }
    if reals == "int8" and program.classifiers:
        raise ConfigError("reals='int8': the joined classifier of an ensemble stays real; use fp16")
    if reals != "int8":
        return _content(metadata, program.reals, reals, program.bits)
    return with_int8(metadata, program.reals, program.bits, calibrate)


def with_int8(metadata: dict[str, str], reals: Tensors, bits: Tensors, calibrate: Any) -> bytes:
    """The content of a packed file with int8 layers, from the parts of one with real layers."""
    if calibrate is None:
        raise ConfigError("reals='int8' needs images to calibrate with: calibrate=images")
    ops, preprocessing = json.loads(metadata["program"]), json.loads(metadata["preprocessing"])
    layers = int8_layers(ops, reals, preprocessing["size"])
    codes = calibrated(_content(metadata, reals, "fp32", bits), ops, layers, calibrate)
    ops, reals, weights = quantized(ops, reals, preprocessing, codes)
    metadata = metadata | {"version": max(INT8_VERSION, metadata["version"]), "program": _compact(ops)}
    return _content(metadata, reals, "int8", weights | bits)


def _version(ops: list[dict[str, Any]]) -> str:
    if any(op["op"] == "sum" for op in ops):
        return SUMS_VERSION
    return UNITS_VERSION if any(UNITS_FIELDS & set(op) for op in ops) else VERSION


def _content(metadata: dict[str, str], reals: Tensors, width: str, others: Tensors) -> bytes:
    tensors = {name: _narrowed(name, array, width) for name, array in reals.items()} | others
    return save({name: np.ascontiguousarray(array) for name, array in tensors.items()}, metadata)


def _narrowed(name: str, array: np.ndarray, reals: str) -> np.ndarray:
    """The array in the file's width; a number that becomes infinite is an error, never an infinity."""
    if not np.isfinite(array).all():
        raise NonFiniteError(f"{name} holds NaN or infinity; the network is damaged")
    with np.errstate(over="ignore"):
        narrow = array.astype(REALS[reals])
    if not np.isfinite(narrow).all():
        worst = np.abs(array).max()
        narrowest = REALS[reals] is np.float16
        raise NonFiniteError(
            f"{name} holds {worst:g}, too large for " + ("fp16; use reals='fp32'" if narrowest else reals)
        )
    return narrow


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
