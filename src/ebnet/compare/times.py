"""Equal milliseconds: what the engine takes for one image, measured once and remembered.

Untrained networks are packed and run in turn with the recipe's own (`ebnet.search.latency`): the time does not depend
on the weights. Wider is not always slower, since kernels like some numbers of channels better than others; so networks
are tried from wide to narrow, and the first that is fast enough is taken. No two measurements agree, therefore what was
found is kept in `RESULTS/times/KEY.json`, with the CPU and the build: a comparison that is resumed, or goes on on
another machine, keeps its networks.
"""

import hashlib
import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import ebnet
from ebnet.compare.budget import Fitted, counted, own, shapes
from ebnet.compare.contestants import Contestant
from ebnet.errors import ConfigError
from ebnet.files import read_json, write_atomically
from ebnet.recipe.settings import Recipe
from ebnet.runs.lock import locked
from ebnet.search.latency import LatencyMeter
from ebnet.search.settings import Machine

SECONDS_BETWEEN_LOOKS = 1.0
TOLERANCE = 1.05
"""Times the recipe's own: so far apart may be two measurements of one network."""
MOST_OPS = 2.0
"""Times the recipe's own: networks with more are not tried. One could be as fast only where the recipe's own number of
channels suits the kernels badly."""


class Times:
    """The times of networks beside a recipe's own, in a directory of results."""

    def __init__(self, recipe: Recipe, results: Path) -> None:
        self.recipe = recipe
        self.budget = own(recipe).counted.config
        known_by = json.dumps(self.budget.to_dict() | {"size": recipe.data.size}, sort_keys=True)
        self.path = results / "times" / f"{hashlib.sha256(known_by.encode()).hexdigest()[:16]}.json"

    def fitted(self, contestant: Contestant) -> Fitted:
        """The network that was found for a contestant, with its time."""
        found = self._found(contestant)
        if found is None or "left_out" in found:
            raise ConfigError(f"{contestant} has no network in {self.path}; `ebnet compare` measures before it trains")
        made = counted(self.recipe, found["settings"])
        return Fitted(made.settings, made.counted, found["milliseconds"])

    def left_out(self, contestant: Contestant) -> str | None:
        """Why a contestant has no network, if so."""
        found = self._found(contestant)
        return None if found is None else found.get("left_out")

    @property
    def machine(self) -> Machine | None:
        """What was measured on, with the time of the recipe's own network there."""
        return Machine(**self._read()["machine"]) if self.path.exists() else None

    def measure(self, contestants: list[Contestant], work: Path) -> None:
        """Find a network for each that has none yet; who shares the work and comes meanwhile waits and reads."""
        while any(self._found(contestant) is None for contestant in contestants):
            with locked(work / f"{self.path.stem}.lock") as mine:
                if mine:
                    self._measure([one for one in contestants if self._found(one) is None])
                else:
                    time.sleep(SECONDS_BETWEEN_LOOKS)

    def _measure(self, contestants: list[Contestant]) -> None:
        meter = LatencyMeter(self.budget, self.recipe.data.size)
        if self.machine is not None and not meter.adopt(self.machine):
            raise ConfigError(
                f"{self.path} was measured on {self.machine}, and this is {meter.machine}: for equal milliseconds "
                f"measure {', '.join(map(str, contestants))} there, or give another --results"
            )
        for contestant in contestants:
            kept = self._read() or {
                "network": self.budget.to_dict(),
                "size": self.recipe.data.size,
                "machine": asdict(meter.machine),
                "methods": {},
            }
            kept["methods"][str(contestant)] = self._widest(contestant, meter) | {"build": f"ebnet {ebnet.__version__}"}
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self.path, (json.dumps(kept, indent=1) + "\n").encode())

    def _widest(self, contestant: Contestant, meter: LatencyMeter) -> dict[str, Any]:
        """The widest network that is fast enough, or why there is none."""
        limit, most = meter.machine.base_ms, MOST_OPS * own(self.recipe).counted.ops
        made = [counted(self.recipe, contestant.settings | shape) for shape in shapes(self.recipe, contestant)]
        tried: dict[str, float] = {}
        for network in reversed([network for network in made if network.counted.ops <= most]):
            config = network.counted.config
            try:
                taken = limit if config == self.budget else meter.milliseconds(config)
            except ConfigError as error:
                return {"settings": contestant.settings, "left_out": str(error)}
            tried[str(config.arch)] = taken
            if taken <= TOLERANCE * limit:
                return {"settings": network.settings, "milliseconds": taken, "tried": tried}
        fastest = min(tried, key=lambda arch: tried[arch])
        why = f"no network is as fast: {fastest} takes {tried[fastest] / limit:.1f} times as long"
        return {"settings": contestant.settings, "left_out": why, "tried": tried}

    def _found(self, contestant: Contestant) -> dict[str, Any] | None:
        """What is kept of a contestant, unless it is of other settings under the same name."""
        found: dict[str, Any] | None = self._read().get("methods", {}).get(str(contestant))
        known = found is not None and contestant.settings.items() <= found["settings"].items()
        return found if known else None

    def _read(self) -> dict[str, Any]:
        if not self.path.exists():
            return {}
        kept: dict[str, Any] = read_json(self.path, "times of networks", ConfigError, "")
        return kept
