"""What is in a packed file. The native reader verifies it first; only then its header is read for display."""

import json
import os
from dataclasses import asdict, dataclass
from typing import Any

from ebnet.names import todays_name
from ebnet.runtime.engine import load

_REALS = {frozenset(("F32",)): "fp32", frozenset(("F16",)): "fp16", frozenset(("F16", "I8")): "int8"}


@dataclass(frozen=True)
class TensorEntry:
    name: str
    dtype: str
    shape: list[int]
    bytes: int


@dataclass(frozen=True)
class Inspection:
    """A packed file's content, apart from the numbers."""

    path: str
    version: str
    file_bytes: int
    header_bytes: int
    bit_bytes: int
    """Bytes of expert weights."""
    real_bytes: int
    reals: str
    """fp32, fp16, int8 (whose other reals are fp16) or mixed."""
    network: dict[str, Any]
    preprocessing: dict[str, Any]
    labels: list[str]
    program: list[dict[str, Any]]
    tensors: list[TensorEntry]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def inspect(path: str | os.PathLike[str]) -> Inspection:
    """Verify a packed file and describe it; raises `FormatError` where it is damaged."""
    engine = load(path)
    with open(engine.path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    metadata = header.pop("__metadata__")
    tensors = [
        TensorEntry(todays_name(name), entry["dtype"], entry["shape"], end - start)
        for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"])
        for start, end in [entry["data_offsets"]]
    ]
    widths = {t.dtype for t in tensors if t.dtype != "U8"}
    return Inspection(
        path=engine.path,
        version=metadata["version"],
        file_bytes=engine.file_bytes,
        header_bytes=8 + length,
        bit_bytes=sum(t.bytes for t in tensors if t.dtype == "U8"),
        real_bytes=sum(t.bytes for t in tensors if t.dtype != "U8"),
        reals=_REALS.get(frozenset(widths), "mixed"),
        network=engine.network,
        preprocessing=json.loads(metadata["preprocessing"]),
        labels=engine.labels,
        program=engine.program,
        tensors=tensors,
    )
