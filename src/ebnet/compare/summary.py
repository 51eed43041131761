"""A comparison in plain values and sentences: what `--json` prints, the page tells and the report reads."""

import json
from dataclasses import replace
from statistics import mean

from ebnet.compare.contest import Contest
from ebnet.compare.contestants import Contestant
from ebnet.compare.standings import Standing, standings, told
from ebnet.files import write_atomically
from ebnet.report.comparison import STANDINGS, Summary, plus_minus, told_name

EXPERTS = 4
"""On top of the best binary method, where there are records of it."""


def summary(contest: Contest) -> Summary:
    """Standings with what has to be said of them, the most important first."""
    rows = standings(contest)
    seeds = len(next((row.top1 for row in rows if row.top1), {}))
    notes = [_state(contest, rows, seeds), *_experts(contest, rows)]
    notes += [f"`{row.contestant}` broke down: {row.broken}." for row in rows if row.broken]
    notes += [f"`{name}` is left out: {why}." for name, why in contest.left_out.items()]
    return {
        "recipe": contest.recipe,
        "equal": contest.equal,
        "set": list(contest.overrides),
        "seeds": seeds,
        "left_out": contest.left_out,
        "notes": notes,
        "standings": [row.to_dict() for row in rows],
    }


def write_summary(contest: Contest, told: Summary) -> None:
    """Beside the records, for `ebnet report`."""
    path = contest.results / STANDINGS / f"{told_name(told)}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, (json.dumps(told, indent=1) + "\n").encode())


def with_experts_of(rows: list[Standing]) -> Contestant | None:
    """The best binary method that can have experts, with four of them on top of its network."""
    ranked = [Contestant.parse(row.contestant) for row in rows if row.top1]
    best = next((one for one in ranked if one.one_bit and one.takes_experts and one.experts == 1), None)
    return None if best is None else Contestant(best.method, EXPERTS, on_top=True)


def _state(contest: Contest, rows: list[Standing], seeds: int) -> str:
    where = f"equal {contest.equal}"
    if contest.equal == "milliseconds" and (machine := contest.times.machine):
        where += f" ({machine.base_ms:.3f} ms on {machine})"
    if seeds == 0:
        return f"Not run yet. These are the networks of {where} that would be trained; what they reach is not known."
    hours = sum(row.seconds for row in rows) / 3600
    return (
        f"{_seeds(seeds, 'paired ')}, {where}, {hours:.1f} hours of a shared core in training steps. "
        "Channels are those of the first stage. Mean and standard error over the seeds; rank 1 is best of its seed; "
        "`behind` is in points, paired with the best mean."
    )


def _experts(contest: Contest, rows: list[Standing]) -> list[str]:
    """What experts add to the best binary method, over the seeds that both have."""
    more = with_experts_of(rows)
    if more is None:
        return []
    one = more.priced
    found = {row.contestant: row for row in standings(replace(contest, methods=(str(one), str(more))))}
    alone, several = found[str(one)], found[str(more)]
    if not several.top1:
        return []
    gained = {seed: several.top1[seed] - alone.top1[seed] for seed in several.top1}
    sizes = [row.cost["bytes_fp16"] / 1e3 for row in (several, alone)]
    gates = several.cost["ops"] / alone.cost["ops"] - 1
    return [
        f"**Experts on top of the best of one bit.** `{more}` reaches {plus_minus(told(several.top1), 2)} %, "
        f"{mean(gained.values()):+.2f}{_error(gained)} points against `{one}` over the same {_seeds(len(gained))}. "
        f"It is the same network with {EXPERTS} sets of weights in every binary convolution and a gate that picks one "
        f"of them for each image: {sizes[0]:.1f} kB instead of {sizes[1]:.1f} kB, and {gates:.1%} more operations, "
        "which are the gates'. The experts begin as copies of the one, and both train equally long."
    ]


def _seeds(count: int, kind: str = "") -> str:
    return f"{count} {kind}seed{'' if count == 1 else 's'}"


def _error(values: dict[int, float]) -> str:
    error = (told(values) or {})["standard_error"]
    return "" if error is None else f" ± {error:.2f}"
