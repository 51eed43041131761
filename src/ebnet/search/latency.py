"""Latency measured, not modelled: a candidate with random weights is packed and run by the engine on this CPU."""

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from ebnet.machine import cpu_name
from ebnet.models.config import NetworkConfig
from ebnet.search.candidate import Candidate
from ebnet.search.settings import Machine, Settings

WARM_UP = 3
TURNS = 25
SECONDS = 2.0
"""A measurement ends after so many turns, or so much time, whichever comes first, but not before `FEWEST` turns."""
FEWEST = 5


@dataclass(frozen=True)
class _Runner:
    """A packed network in the engine, with a picture for it."""

    engine: Any
    picture: np.ndarray

    def seconds(self) -> float:
        start = time.perf_counter()
        self.engine(self.picture)
        return time.perf_counter() - start


class LatencyMeter:
    """Measures candidates against the base network, turn by turn.

    Other work on the machine slows both alike, so what is taken is the median of the ratios, times what the base
    network took when the study began.
    """

    def __init__(self, network: NetworkConfig, input_size: int, threads: int = 1) -> None:
        self._network, self._size, self._threads = network, input_size, threads
        self._base = self._runner(network)
        self._base_ms = 1e3 * median(self._base.seconds() for _ in range(WARM_UP + TURNS))

    @property
    def machine(self) -> Machine:
        """This machine, with the base network's latency as it was just measured."""
        return Machine(cpu_name(), self._base.engine.isa, self._threads, self._base_ms)

    def adopt(self, machine: Machine) -> bool:
        """Measure for a study that began earlier; False if it is about another kind of machine."""
        self._base_ms = machine.base_ms
        return self.machine == machine

    def __call__(self, candidate: Candidate) -> float:
        """Milliseconds of one picture."""
        return self.milliseconds(candidate.config(self._network))

    def milliseconds(self, config: NetworkConfig) -> float:
        """Of one picture, for any network."""
        runner = self._runner(config)
        for _ in range(WARM_UP):
            runner.seconds()
        ratios: list[float] = []
        end = time.perf_counter() + SECONDS
        while len(ratios) < TURNS and (len(ratios) < FEWEST or time.perf_counter() < end):
            ratios.append(runner.seconds() / self._base.seconds())
        return self._base_ms * median(ratios)

    def _runner(self, config: NetworkConfig) -> _Runner:
        import torch

        from ebnet.models.network import ExpertBinaryNetwork
        from ebnet.nn import Precision
        from ebnet.packing.file import pack
        from ebnet.runtime.engine import load

        with torch.random.fork_rng():
            torch.manual_seed(0)
            model = ExpertBinaryNetwork(config, Precision.BINARY).eval()
        with tempfile.TemporaryDirectory() as directory:
            packed = pack(model, Path(directory) / "candidate.ebn")
            engine = load(packed, threads=self._threads)
        picture = np.random.default_rng(0).standard_normal((1, config.in_channels, self._size, self._size))
        return _Runner(engine, picture.astype(np.float32))


def meter_for(settings: Settings) -> LatencyMeter | None:
    """A meter for a study that has a latency budget, if this is the kind of machine it is about."""
    if settings.machine is None:
        return None
    meter = LatencyMeter(settings.config, settings.input_size, settings.machine.threads)
    return meter if meter.adopt(settings.machine) else None
