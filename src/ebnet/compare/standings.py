"""Who came where: accuracies, ranks and differences over paired seeds, from the records that are there.

A seed counts where every contestant that is told has a record for it, so that all are compared on the same seeds. A
training that broke down has no accuracy: its contestant is told as broken and takes no rank.
"""

from dataclasses import dataclass
from math import sqrt
from statistics import mean, stdev
from typing import Any

from ebnet.compare.contest import Contest
from ebnet.compare.contestants import Contestant
from ebnet.cost.profile import Profile
from ebnet.reproduce.chain import chain
from ebnet.reproduce.records import Records


@dataclass(frozen=True)
class Standing:
    """One contestant: top-1 in percent and rank (1 is best) by seed, over the seeds that all have."""

    contestant: str
    arch: str
    channels: tuple[int, ...]
    """Of each stage."""
    cost: dict[str, float]
    top1: dict[int, float]
    ranks: dict[int, float]
    behind: dict[int, float]
    """Points behind the best by mean, paired."""
    broken: str | None
    milliseconds: float | None
    """Of one image in the engine, where the budget was measured."""
    seconds: float
    """Of all its phases' training, shared ones included."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "method": self.contestant,
            "arch": self.arch,
            "channels": list(self.channels),
            "cost": self.cost,
            "top1_by_seed": self.top1,
            "top1": told(self.top1),
            "rank": told(self.ranks),
            "behind_the_best": told(self.behind),
            "broken": self.broken,
            "milliseconds": self.milliseconds,
            "seconds": self.seconds,
        }


def told(values: dict[int, float]) -> dict[str, float | None] | None:
    """Mean and standard error over seeds."""
    if not values:
        return None
    error = stdev(values.values()) / sqrt(len(values)) if len(values) > 1 else None
    return {"mean": mean(values.values()), "standard_error": error}


def standings(contest: Contest) -> list[Standing]:
    """Best first; those without a common seed last, in the order given."""
    records = Records(contest.results)
    found = {contestant: _by_seed(contest, contestant, records) for contestant in contest.contestants}
    broken = {one: why for one, runs in found.items() if (why := _why(runs))}
    sound = [one for one in found if one not in broken]
    shared = set.intersection(*(set(found[one]) for one in sound)) if sound else set()
    top1 = {one: {seed: 100 * found[one][seed][-1]["top1"] for seed in sorted(shared)} for one in sound}
    order = sorted(sound, key=lambda one: -mean(top1[one].values())) if shared else sound
    rows = []
    for one in [*order, *broken]:
        own, network = top1.get(one, {}), contest.network(one)
        rows.append(
            Standing(
                str(one),
                str(network.counted.config.arch),
                network.counted.config.arch.widths,
                _costs(network.counted),
                own,
                {seed: _rank(own[seed], [top1[other][seed] for other in sound]) for seed in own},
                {seed: top1[order[0]][seed] - own[seed] for seed in own},
                broken.get(one),
                network.milliseconds,
                sum(phase.get("seconds", 0.0) for phases in found[one].values() for phase in phases),
            )
        )
    return rows


def _by_seed(contest: Contest, contestant: Contestant, records: Records) -> dict[int, tuple[dict[str, Any], ...]]:
    found = {}
    for seed in range(contest.seeds):
        links = chain(contest.recipe_of(contestant, seed))
        kept = [records.read(link.key) for link in links if records.has(link.key)]
        if len(kept) == len(links) or any("failed" in record for record in kept):
            found[seed] = tuple(kept)
    return found


def _why(runs: dict[int, tuple[dict[str, Any], ...]]) -> str | None:
    for seed, phases in runs.items():
        for phase in phases:
            if "failed" in phase:
                return f"seed {seed}, {phase['stage']}: {phase['failed']}"
    return None


def _rank(own: float, all_of_seed: list[float]) -> float:
    """Equal accuracies share the mean of their places."""
    better = sum(value > own for value in all_of_seed)
    equal = sum(value == own for value in all_of_seed)
    return better + (equal + 1) / 2


def _costs(counted: Profile) -> dict[str, float]:
    return {
        "bops": counted.bops,
        "flops": counted.flops,
        "ops": counted.ops,
        "bytes_fp16": counted.bytes_fp16,
        "bytes_fp32": counted.bytes_fp32,
    }
