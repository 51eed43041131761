"""What the engine takes for the networks of the opening figure: measured by `ebnet results --times`, kept as JSON."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ebnet.errors import ConfigError
from ebnet.files import read_json, write_atomically
from ebnet.machine import provenance
from ebnet.models.config import NetworkConfig

FILE = "times.json"
"""Beside the records."""


@dataclass(frozen=True)
class EngineTimes:
    """Milliseconds of one image, one thread, and what measured them."""

    made: dict[str, str]
    networks: list[dict[str, Any]]

    @property
    def machine(self) -> str:
        return self.made["machine"]

    def of(self, config: NetworkConfig) -> float | None:
        wanted = config.to_dict()
        return next((one["milliseconds"] for one in self.networks if one["network"] == wanted), None)


def read_times(results: Path) -> EngineTimes | None:
    """None where nothing was measured."""
    path = results / FILE
    if not path.exists():
        return None
    kept = read_json(path, "times of networks", ConfigError, "")
    return EngineTimes(kept["made"], kept["networks"])


def measure(configs: list[NetworkConfig], size: int, results: Path) -> Path:
    """Run untrained networks in turn with the first of them: the time does not depend on the weights."""
    from ebnet.search.latency import LatencyMeter

    meter = LatencyMeter(configs[0], size)
    times = [meter.machine.base_ms, *(meter.milliseconds(config) for config in configs[1:])]
    networks = [
        {"network": config.to_dict(), "milliseconds": round(time, 5)}
        for config, time in zip(configs, times, strict=True)
    ]
    kept = {"made": provenance(), "size": size, "networks": networks}
    write_atomically(results / FILE, (json.dumps(kept, indent=1) + "\n").encode())
    return results / FILE
