"""`ebnet.load(path)` -> an engine that maps images to logits.

What a run of arrays does without is imported where it is used: it would cost a small device memory and time.
"""

import os
from collections.abc import Sequence
from functools import cached_property
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from ebnet._native import Engine as NativeEngine
from ebnet.errors import ConfigError, NonFiniteError, ShapeError
from ebnet.names import todays_name

if TYPE_CHECKING:
    from ebnet.runtime.limits import Limits
    from ebnet.runtime.preprocessing import Preprocessing
    from ebnet.runtime.results import Prediction, Run, Trace


STREAM_TYPES = ("fp32", "fp16", "bf16")
REALS, PIXELS = np.dtype(np.float32), np.dtype(np.uint8)


def load(
    path: str | bytes | os.PathLike[Any], threads: int = 1, stream: str = "fp32", limits: "Limits | None" = None
) -> "Engine":
    """Read and verify a packed file. It stays open: an expert is laid out when it is first chosen.

    Args:
        path: a file that `ebnet.pack` wrote, or `zoo:NAME`. A damaged or hostile file raises `FormatError`.
        threads: threads of one call, the caller's included.
        stream: in what the residual stream between binary layers is kept. Arithmetic is in fp32 whatever it is; fp16
            and bf16 halve its memory, and their rounding changes the class of an image now and then.
        limits: what one image may cost, see `ebnet.Limits`. A file that asks for more raises `ShapeError`.

    Example: `logits = ebnet.load("net.ebn")(images)`
    """
    try:
        file = os.fsdecode(path)
        count = index(threads)
    except TypeError:
        raise ConfigError(f"path={path!r}, threads={threads!r}: expected a file's name and a whole number") from None
    if file.startswith("zoo:"):
        from ebnet.zoo import resolve

        file = resolve(file)
    if stream not in STREAM_TYPES:
        raise ConfigError(f"stream={stream!r}: expected one of {', '.join(STREAM_TYPES)}")
    bounds = {}
    if limits is not None:
        from ebnet.runtime.limits import Limits

        if not isinstance(limits, Limits):
            raise ConfigError(f"limits={limits!r}: expected ebnet.Limits, e.g. ebnet.Limits(memory=4 << 30)")
        bounds = limits.to_dict()
    return Engine(NativeEngine.load(os.fsencode(file), count, stream, **bounds), file)


def _parsed(text: str) -> Any:
    import json

    return json.loads(text)


class Engine:
    """A packed network. Calls run without the GIL; threads may share one engine, and their calls run side by side.

    What the calls share is the network; each call that runs at the same time as others has its own activations.
    """

    def __init__(self, native: NativeEngine, path: str) -> None:
        self._native = native
        self.path = path
        self.labels: list[str] = native.labels

    @cached_property
    def preprocessing(self) -> "Preprocessing":
        """How an image becomes the network's input."""
        from ebnet.runtime.preprocessing import Preprocessing

        return Preprocessing(**_parsed(self._native.preprocessing))

    def run(self, images: Any) -> "Run":
        """Logits and chosen experts of images: NCHW float32, normalised, or NHWC uint8, normalised here."""
        from ebnet.runtime.results import Run

        return Run(*self._native.run(self._checked(images)))

    def __call__(self, images: Any) -> np.ndarray:
        """Logits [batch, classes]; images as in `run`."""
        return self._native.run(self._checked(images))[0]

    def experts(self, images: Any) -> np.ndarray:
        """The expert each binary layer chose, in forward order: int64 [layers, batch]."""
        return self._native.run(self._checked(images))[1]

    def predict(
        self, paths: "Sequence[str | os.PathLike[str]] | str | os.PathLike[str]", top: int = 5, invert: bool = False
    ) -> Any:
        """The `top` classes of image files: one `Prediction` for one path, a list for several.

        Args:
            invert: swap dark and light first, for ink on paper where the network knows light on dark.
        """
        from pathlib import Path

        one = isinstance(paths, str | os.PathLike)
        files: Sequence[str | os.PathLike[str]] = [paths] if one else paths  # type: ignore[list-item,assignment]
        found = [self.predictions(self(self.preprocessing.read(Path(file), invert)[None]), top)[0] for file in files]
        return found[0] if one else found

    def predictions(self, logits: np.ndarray, top: int = 5) -> "list[Prediction]":
        """The `top` classes for each row of logits, with their names and probabilities."""
        from ebnet.runtime.results import Prediction

        weights = np.exp(logits.astype(np.float64) - logits.max(1, keepdims=True))
        weights /= weights.sum(1, keepdims=True)
        names = self.labels or [str(number) for number in range(self.classes)]
        best = np.argsort(-weights, axis=1, kind="stable")[:, : max(top, 1)]
        return [
            Prediction(row.tolist(), [names[i] for i in row], of_image[row].tolist())
            for row, of_image in zip(best, weights, strict=True)
        ]

    def trace(self, images: Any) -> "Trace":
        """A forward pass with the value of every op kept, for verification."""
        from ebnet.runtime.results import Trace

        checked = self._checked(images)
        logits, experts, flat = self._native.trace(checked)
        shapes = [op["shape"] for op in self._native.profile(checked[:1])]
        return Trace(logits, experts, [v.reshape(-1, *shape) for v, shape in zip(flat, shapes, strict=True)])

    def profile(self, images: Any) -> list[dict[str, Any]]:
        """Per op: name, kind, kernel, macs (one image), seconds (whole batch) and shape of the result."""
        return [op | {"name": todays_name(op["name"])} for op in self._native.profile(self._checked(images))]

    @property
    def classes(self) -> int:
        return self._native.classes

    @property
    def threads(self) -> int:
        return self._native.threads

    @property
    def stream(self) -> str:
        """The type of the residual stream: fp32, fp16 or bf16."""
        return self._native.stream

    @property
    def isa(self) -> str:
        """The instruction set whose kernels run; the environment variable EBNET_ISA forces one."""
        return self._native.isa

    @property
    def kernels(self) -> list[str]:
        """The kernel of every binary layer, in forward order."""
        return self._native.kernels

    @property
    def session_bytes(self) -> list[int]:
        """Bytes of activations and scratch of every session kept for later calls: as many as ever ran at once."""
        return self._native.session_bytes

    @property
    def file_bytes(self) -> int:
        return self._native.file_bytes

    @property
    def program(self) -> list[dict[str, Any]]:
        """The file's flat list of ops."""
        ops: list[dict[str, Any]] = _parsed(self._native.program)
        return [op | {"name": todays_name(op["name"])} if "name" in op else op for op in ops]

    @property
    def layers(self) -> list[str]:
        """The names of the binary layers, in forward order."""
        return [op["name"] for op in self.program if op["op"] == "binary"]

    @property
    def expert_counts(self) -> list[int]:
        """How many experts every binary layer chooses from, in forward order."""
        return [op.get("experts", 1) for op in self.program if op["op"] == "binary"]

    @property
    def network(self) -> dict[str, Any]:
        """The settings of the network that was packed."""
        return _parsed(self._native.network)

    def __repr__(self) -> str:
        name = self.network.get("arch", "?")
        return f"Engine({self.path!r}, {name}, {self.classes} classes, {self.isa}, threads={self.threads})"

    def _checked(self, images: Any) -> np.ndarray:
        """Images as a contiguous array of a type and shape the core takes; the core checks the numbers."""
        if type(images) is not np.ndarray:
            images = np.asarray(images.detach().cpu().numpy() if hasattr(images, "detach") else images)
        channels = self._native.in_channels
        reals = images.dtype.kind == "f"
        if not reals and images.dtype != PIXELS:
            raise ShapeError(f"images of type {images.dtype}; expected float32 (NCHW, normalised) or uint8 (NHWC)")
        if images.ndim != 4 or images.shape[1 if reals else 3] != channels:
            expected = f"{channels}, height, width] float32" if reals else f"height, width, {channels}] uint8"
            raise ShapeError(f"images of shape {list(images.shape)}; expected [batch, {expected}")
        if reals and images.dtype != REALS:
            if not np.isfinite(images).all():
                raise NonFiniteError("the images hold NaN or infinity")
            images = images.astype(np.float32)
        return images if images.flags.c_contiguous else np.ascontiguousarray(images)
