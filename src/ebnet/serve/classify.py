"""One picture through the engine: classes, the path of experts, and how long it took."""

import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ebnet.runtime.engine import Engine


@dataclass(frozen=True)
class Layer:
    """A binary layer and the expert it picked."""

    name: str
    experts: int
    chosen: int


@dataclass(frozen=True)
class Answer:
    label: str
    classes: list[str]
    probabilities: list[float]
    """Of all classes, in their order."""
    path: list[Layer]
    milliseconds: float
    """Of the engine alone, decoding left out."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def classify(engine: Engine, picture: np.ndarray) -> Answer:
    """Classify a uint8 picture of the network's size."""
    batch = picture[None]
    start = time.perf_counter()
    logits, experts = engine.run(batch)
    seconds = time.perf_counter() - start
    weights = np.exp(logits[0].astype(np.float64) - logits.max())
    probabilities = weights / weights.sum()
    return Answer(
        label=class_names(engine)[int(probabilities.argmax())],
        classes=class_names(engine),
        probabilities=[float(p) for p in probabilities],
        path=_path(engine, experts),
        milliseconds=1e3 * seconds,
    )


def class_names(engine: Engine) -> list[str]:
    return engine.labels or [str(i) for i in range(engine.classes)]


def _path(engine: Engine, chosen: np.ndarray) -> list[Layer]:
    """The path of the one image that was run."""
    layers = zip(engine.layers, engine.expert_counts, chosen[:, 0], strict=True)
    return [Layer(name, experts, int(expert)) for name, experts, expert in layers]
