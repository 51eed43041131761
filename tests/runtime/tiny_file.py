"""A packed file written by hand: small, with every op in it, and easy to damage in one chosen place."""

import json
from copy import deepcopy
from typing import Any

import numpy as np
from safetensors.numpy import save

CHANNELS, CLASSES = 3, 4

OPS: list[dict[str, Any]] = [
    {"op": "conv", "in": [0], "name": "a", "out": 4, "kernel": 3, "stride": 1, "pad": 1, "act": "relu"},
    {"op": "maxpool", "in": [1], "kernel": 3, "stride": 2, "pad": 1},
    {"op": "conv", "in": [1], "name": "b", "out": 2, "kernel": 3, "stride": 2, "pad": 1, "act": "prelu"},
    {"op": "concat", "in": [3, 2]},
    {"op": "binary", "in": [4], "name": "c", "skip": 4, "out": 6, "kernel": 3, "pad": 1, "groups": 2, "experts": 2}
    | {"squeeze": 2, "act": "prelu"},
    {"op": "avgpool", "in": [5], "kernel": 2, "stride": 2, "ceil": True},
    {"op": "conv", "in": [6], "name": "d", "out": 10, "kernel": 1},
    {"op": "binary", "in": [5], "name": "e", "skip": 7, "out": 10, "kernel": 3, "stride": 2, "pad": 1, "act": "prelu"},
    {"op": "binary", "in": [8], "name": "f", "out": 10, "kernel": 1, "experts": 3},
    {"op": "global_pool", "in": [9]},
    {"op": "linear", "in": [10], "name": "g", "out": 5, "act": "prelu"},
    {"op": "linear", "in": [11], "name": "h", "out": CLASSES},
]


class TinyFile:
    """Ops, tensors and metadata as plain values; `content()` is the file."""

    def __init__(self, dtype: type[np.floating] = np.float32) -> None:
        self.ops = deepcopy(OPS)
        self.dtype = dtype
        self.rng = np.random.default_rng(0)
        self.tensors: dict[str, np.ndarray] = {}
        for name, cin, out, kernel in (("a", 3, 4, 3), ("b", 4, 2, 3), ("d", 6, 10, 1)):
            self._reals(f"{name}.weight", out, cin, kernel, kernel)
            self._reals(f"{name}.norm", 2, out)
        for name, cin, out, taps, experts in (("c", 6, 6, 27, 2), ("e", 6, 10, 54, 1), ("f", 10, 10, 10, 3)):
            self._binary(name, cin, out, taps, experts)
        self._reals("c.squeeze", 2, 6)
        self._reals("c.excite", 6, 2)
        for name, cin, out in (("g", 10, 5), ("h", 5, CLASSES)):
            self._reals(f"{name}.weight", out, cin)
            self._reals(f"{name}.bias", out)
        for name, out in (("b", 2), ("c", 6), ("e", 10), ("g", 5)):
            self._reals(f"{name}.slope", out)
        preprocessing = {"size": 8, "resize": 9, "crop": 8, "mean": [0.5] * 3, "std": [0.25] * 3, "in_channels": 3}
        self.metadata: dict[str, Any] = {
            "format": "ebnet",
            "version": "1",
            "preprocessing": preprocessing,
            "labels": ["zero", "one", "two", "three"],
            "network": {},
        }

    def _binary(self, name: str, cin: int, out: int, taps: int, experts: int) -> None:
        """The tensors that every op `binary` has."""
        bits = self.rng.integers(0, 2, (experts, out, taps))
        self.tensors[f"{name}.bits"] = np.packbits(bits, axis=2, bitorder="little")
        self._reals(f"{name}.norm", 2, cin)
        self._reals(f"{name}.scale", out)
        if experts > 1:
            self._reals(f"{name}.gate.weight", experts, cin)
            self._reals(f"{name}.gate.bias", experts)

    def _reals(self, name: str, *shape: int) -> None:
        self.tensors[name] = self.rng.standard_normal(shape).astype(self.dtype)

    def make_int8(self, op: dict[str, Any], code: Any) -> None:
        op["int8"] = code
        weight = f"{op['name']}.weight"
        self.tensors[weight] = self.rng.integers(-64, 65, self.tensors[weight].shape).astype(np.int8)
        if op["op"] == "linear":
            self._reals(f"{op['name']}.scale", op["out"])

    def make_unit(self, op: dict[str, Any], fields: dict[str, bool]) -> None:
        op |= fields
        for field in ("shift", "after"):
            if fields.get(field):
                self._reals(f"{op['name']}.{field}", op["out"])
        if fields.get("expert_scales"):
            self._reals(f"{op['name']}.scale", op["experts"], op["out"])

    def content(self) -> bytes:
        values = self.metadata | ({} if "program" in self.metadata else {"program": self.ops})
        texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in values.items()}
        return save({name: np.ascontiguousarray(array) for name, array in self.tensors.items()}, texts)


class TinyInt8File(TinyFile):
    """The same with int8 layers: the image read as pixels, some values kept as bytes and some not."""

    def __init__(self) -> None:
        super().__init__(np.float16)
        self.metadata["version"] = "2"
        codes = {"b": [0.02, 0], "d": [0.05, 128], "g": [0.03, 100], "h": [0.04, 90]}
        for op in self.ops:
            if op["op"] in ("conv", "linear"):
                self.make_int8(op, codes.get(op["name"], "pixels"))


class TinyUnitsFile(TinyFile):
    """The same with the units of other papers: shifts, an activation after the skip, scales of each expert's own."""

    def __init__(self) -> None:
        super().__init__()
        self.metadata["version"] = "3"
        unit = {"shift": True, "after": True, "act_last": True}
        for op in self.ops:
            if op["op"] == "binary":
                self.make_unit(op, unit | ({"expert_scales": True} if op.get("experts", 1) > 1 else {}))


class TinySumsFile(TinyFile):
    """The same with a sum of three maps before the pool."""

    def __init__(self) -> None:
        super().__init__()
        self.metadata["version"] = "4"
        self.ops.insert(9, {"op": "sum", "in": [9, 8, 7], "factors": [0.5, -1.25, 2]})
        for number, op in enumerate(self.ops[10:], 10):
            op["in"] = [number]


def with_header(content: bytes, header: bytes) -> bytes:
    """The file with another header."""
    return len(header).to_bytes(8, "little") + header + tensor_bytes(content)


def header_of(content: bytes) -> dict[str, Any]:
    return json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])


def tensor_bytes(content: bytes) -> bytes:
    return content[8 + int.from_bytes(content[:8], "little") :]


def rewritten(content: bytes, header: dict[str, Any]) -> bytes:
    return with_header(content, json.dumps(header).encode())
