"""The engine's latency next to torch's, measured in turns."""

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ebnet.models.network import ExpertBinaryNetwork
from ebnet.nn import Precision
from ebnet.runtime.bench import bench
from ebnet.runtime.engine import load


def compare(path: str, network: ExpertBinaryNetwork, seconds: float = 4.0) -> dict[str, Any]:
    """What `ebnet bench --json` prints, with `peers`: engine, float network and binary network in torch.

    One thread, one picture at a time. Contestants take turns so that other work on the machine slows all alike.
    """
    engine = load(path)
    side = engine.preprocessing.size
    image = np.random.default_rng(0).standard_normal((1, engine.preprocessing.in_channels, side, side), np.float32)
    real = ExpertBinaryNetwork(network.config.with_experts(1), Precision.REAL).eval()
    contestants = {
        "engine": lambda: engine(image),
        "torch, real-valued network": _in_torch(real, image),
        "torch, this binary network": _in_torch(network.eval(), image),
    }
    found = bench(path, threads=(1,), batches=(1, 32), size=None, seconds=seconds / 8)
    return found.to_dict() | {"peers": _in_turns(contestants, seconds)}


def _in_torch(network: ExpertBinaryNetwork, image: np.ndarray) -> Callable[[], Any]:
    tensor = torch.from_numpy(image)

    @torch.inference_mode()
    def run() -> Any:
        return network(tensor)

    return run


def _in_turns(contestants: dict[str, Callable[[], Any]], seconds: float) -> list[dict[str, Any]]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    times: dict[str, list[float]] = {name: [] for name in contestants}
    try:
        for run in contestants.values():
            run()
        end = time.perf_counter() + seconds
        while len(times["engine"]) < 20 or time.perf_counter() < end:
            for name, run in contestants.items():
                start = time.perf_counter()
                run()
                times[name].append(time.perf_counter() - start)
    finally:
        torch.set_num_threads(threads)
    return [
        {"name": name, "median": statistics.median(values), "minimum": min(values), "runs": len(values)}
        for name, values in times.items()
    ]
