"""How fast a packed file runs here: latency at batch 1, throughput at larger batches, and where the time goes."""

import os
import statistics
import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ebnet.machine import provenance
from ebnet.runtime.engine import Engine, load


@dataclass(frozen=True)
class Timing:
    """Seconds of one call, over `runs` calls."""

    threads: int
    batch: int
    runs: int
    minimum: float
    median: float
    p90: float
    p99: float

    @property
    def images_per_second(self) -> float:
        return self.batch / self.median


@dataclass(frozen=True)
class OpTiming:
    """One op at batch 1: the median over runs."""

    name: str
    kind: str
    kernel: str
    shape: list[int]
    seconds: float
    share: float
    gmacs_per_second: float


@dataclass(frozen=True)
class Bench:
    path: str
    isa: str
    stream: str
    size: int
    timings: list[Timing]
    ops: list[OpTiming]
    made: dict[str, str]
    """Where and when it was measured, and by which versions."""

    def to_dict(self) -> dict[str, Any]:
        timings = [asdict(t) | {"images_per_second": t.images_per_second} for t in self.timings]
        return asdict(self) | {"timings": timings}


def bench(
    path: str | os.PathLike[str],
    threads: tuple[int, ...],
    batches: tuple[int, ...],
    size: int | None,
    seconds: float,
    stream: str = "fp32",
) -> Bench:
    """Measure every thread count and batch for about `seconds` each, on random normalised images.

    Thread counts take turns, so that what disturbs one disturbs all.
    """
    engines = {count: load(path, count, stream) for count in threads}
    first = engines[threads[0]]
    side = size or first.preprocessing.size
    timings = [found for batch in batches for found in _timings(engines, _images(first, batch, side), seconds)]
    timings.sort(key=lambda timing: threads.index(timing.threads))
    ops = _ops(first, _images(first, 1, side), seconds)
    return Bench(os.fspath(path), first.isa, stream, side, timings, ops, provenance())


def _images(engine: Engine, batch: int, side: int) -> np.ndarray:
    shape = (batch, engine.preprocessing.in_channels, side, side)
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32)


def _timings(engines: dict[int, Engine], images: np.ndarray, seconds: float) -> list[Timing]:
    times: dict[int, list[float]] = {threads: [] for threads in engines}
    for engine in engines.values():
        engine(images)
    end = time.perf_counter() + seconds * len(engines)
    while len(next(iter(times.values()))) < 3 or time.perf_counter() < end:
        for threads, engine in engines.items():
            start = time.perf_counter()
            engine(images)
            times[threads].append(time.perf_counter() - start)
    return [_timing(threads, len(images), taken) for threads, taken in times.items()]


def _timing(threads: int, batch: int, times: list[float]) -> Timing:
    p90, p99 = np.percentile(times, (90, 99))
    return Timing(threads, batch, len(times), min(times), statistics.median(times), float(p90), float(p99))


def _ops(engine: Engine, images: np.ndarray, seconds: float) -> list[OpTiming]:
    engine(images)
    runs: list[list[dict[str, Any]]] = []
    end = time.perf_counter() + seconds
    while len(runs) < 3 or time.perf_counter() < end:
        runs.append(engine.profile(images))
    medians = [statistics.median(run[i]["seconds"] for run in runs) for i in range(len(runs[0]))]
    total = sum(medians)
    return [
        OpTiming(
            op["name"],
            op["kind"],
            op["kernel"],
            op["shape"],
            median,
            median / total,
            op["macs"] / median / 1e9 if median > 0 else 0.0,
        )
        for op, median in zip(runs[0], medians, strict=True)
    ]
