"""How long a comparison takes: one training step of each method and phase, and the hours that they make.

    python benchmarks/comparison.py [METHOD ...] [--recipe comparison] [--equal ops] [--rounds 5]
    python benchmarks/comparison.py --json             the numbers

Steps are whole steps of `ebnet train` on one core. The table says which phases the native operation serves, and why
others go through torch. The hours are of training steps; validation comes on top.
"""

import argparse
import json
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from cpu import cpu_name, pinned
from ebnet.compare.budget import checked
from ebnet.compare.contest import Contest
from ebnet.compare.contestants import PREPARED
from ebnet.models.block import BinaryUnit
from training_step import Training

IMAGES = 50_000
"""In an epoch: those of CIFAR-10."""


def measured(contest: Contest, rounds: int) -> list[dict[str, Any]]:
    """A row for each method and phase: the median time of a step, and the hours of all seeds."""
    rows = []
    for contestant in contest.contestants:
        recipe = contest.recipe_of(contestant, 0)
        settings = {f"network.{name}": value for name, value in contest.network(contestant).settings.items()}
        for stage in recipe.stages:
            training = Training(contest.recipe, settings | contestant.training, stage, 1)
            seconds = median(training.seconds() for _ in range(rounds))
            schedule = recipe.settings(stage)
            steps = schedule.epochs * (IMAGES // schedule.batch_size)
            units = [module for module in training.trainer.network.modules() if isinstance(module, BinaryUnit)]
            rows.append(
                {
                    "method": str(contestant),
                    "stage": stage,
                    "seconds": seconds,
                    "images_per_second": schedule.batch_size / seconds,
                    "through_torch": next((unit.refusal for unit in units if unit.refusal), None),
                    "hours": contest.seeds * steps * seconds / 3600,
                }
            )
    return rows


def table(rows: list[dict[str, Any]], contest: Contest) -> Table:
    hours = sum(row["hours"] for row in rows)
    title = f"{contest.recipe}, equal {contest.equal}, {contest.seeds} seeds: {hours:.2f} core-hours, {cpu_name()}"
    shown = Table(title=title)
    for column in ("method", "stage", "ms a step", "images/s", "hours", "through torch because of"):
        shown.add_column(column, justify="right" if column in ("ms a step", "images/s", "hours") else "left")
    for row in rows:
        numbers = (f"{1e3 * row['seconds']:.0f}", f"{row['images_per_second']:,.0f}", f"{row['hours']:.2f}")
        shown.add_row(row["method"], row["stage"], *numbers, row["through_torch"] or "")
    return shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("methods", nargs="*", default=PREPARED)
    parser.add_argument("--recipe", default="comparison")
    parser.add_argument("--equal", default="ops")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--results", type=Path, default=Path("results/comparison"))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    contest = Contest(
        tuple(options.methods), options.recipe, checked(options.equal), options.seeds, Path("runs"), options.results
    )
    with pinned(1):
        rows = measured(contest, options.rounds)
    if options.json:
        print(json.dumps({"cpu": cpu_name(), "recipe": contest.recipe, "equal": contest.equal, "steps": rows}))
    else:
        Console().print(table(rows, contest))


if __name__ == "__main__":
    main()
