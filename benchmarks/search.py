"""Is the paper's staged search better than random search with the same number of trainings?

    python benchmarks/search.py [--table mnist5k|mnist5k-one-epoch|FILE] [--seeds 200] [--json]

Both choose from the networks of a table whose accuracies were measured once by training all of them
(`benchmarks/search_grid.py`), so a "training" is a look-up and hundreds of searches take seconds. The staged search
starts from the recipe's network, as `ebnet search` does, or with `--random-base` from one drawn among those within the
budget; random search draws as many different networks within the budget as the staged search trained. What counts is
the best accuracy within the budget.
"""

import argparse
import json
from dataclasses import asdict, dataclass
from math import sqrt
from pathlib import Path
from random import Random
from statistics import mean, stdev

from rich.console import Console
from rich.table import Table as View

from ebnet.search.budget import Budget, Budgets, Prices
from ebnet.search.candidate import Candidate
from ebnet.search.directions import Strategy, Sweep, next_sweep
from ebnet.search.space import PAPER_DIRECTIONS
from ebnet.search.table import Table, read_table, shipped_table

SHARES = (0.25, 0.5, 0.75, 1.0)
"""Budgets: the BOPs that this share of the table's networks stay within."""


@dataclass(frozen=True)
class Comparison:
    """Over all seeds at one budget; accuracies in percent."""

    share: float
    bops: float
    networks: int
    """Within the budget."""
    trainings: float
    """Mean number, the same for both searches."""
    optimum: float
    staged: float
    random: float
    gain: float
    """Mean of staged - random over the seeds, and its standard error."""
    standard_error: float
    staged_found_optimum: float
    random_found_optimum: float


def staged_search(
    table: Table, base: Candidate, budgets: Budgets, prices: Prices, seed: int, per_direction: int, combinations: int
) -> dict[str, float]:
    """The accuracies of what the staged search trains."""
    strategy = Strategy(base, table.space(), PAPER_DIRECTIONS, per_direction, combinations, seed)
    sweeps: list[Sweep] = []
    trained: dict[str, float] = {}
    while (sweep := next_sweep(strategy, [budgets] * 2, sweeps, trained, prices)) is not None:
        sweeps.append(sweep)
        trained |= {p.candidate.key: table.accuracies[p.candidate.key] for p in sweep.proposals}
    return trained


def compare(
    table: Table,
    share: float,
    seeds: int,
    per_direction: int = 2,
    combinations: int = 2,
    random_base: bool = False,
) -> Comparison:
    prices = Prices(table.network, table.input_size)
    costs = {key: prices.of(Candidate.parse(key), "bops") for key in table.accuracies}
    limit = sorted(costs.values())[round(share * len(costs)) - 1]
    within = sorted(key for key, cost in costs.items() if cost <= limit)
    optimum = max(table.accuracies[key] for key in within)
    staged, drawn, trainings = [], [], []
    for seed in range(seeds):
        random = Random(f"{seed}/{share}")
        base = Candidate.parse(random.choice(within)) if random_base else Candidate.of(table.network)
        budgets = (Budget("bops", limit),)
        trained = staged_search(table, base, budgets, prices, seed, per_direction, combinations)
        sample = random.sample(within, len(trained))
        trainings.append(len(trained))
        staged.append(100 * max(trained.values()))
        drawn.append(100 * max(table.accuracies[key] for key in sample))
    gains = [ours - theirs for ours, theirs in zip(staged, drawn, strict=True)]
    return Comparison(
        share=share,
        bops=limit,
        networks=len(within),
        trainings=mean(trainings),
        optimum=100 * optimum,
        staged=mean(staged),
        random=mean(drawn),
        gain=mean(gains),
        standard_error=stdev(gains) / sqrt(seeds),
        staged_found_optimum=mean(value == 100 * optimum for value in staged),
        random_found_optimum=mean(value == 100 * optimum for value in drawn),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", default="mnist5k", help="mnist5k, mnist5k-one-epoch or a file")
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--per-direction", type=int, default=2)
    parser.add_argument("--combinations", type=int, default=2)
    parser.add_argument("--random-base", action="store_true")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    file = Path(arguments.table)
    table = read_table(file if file.exists() else shipped_table(arguments.table))
    size = (arguments.per_direction, arguments.combinations)
    found = [compare(table, share, arguments.seeds, *size, random_base=arguments.random_base) for share in SHARES]
    if arguments.json:
        print(json.dumps([asdict(comparison) for comparison in found]))
        return
    view = View(title=f"best top-1 % within the budget, mean of {arguments.seeds} seeds; gain = staged - random")
    for column in ("BOPs", "networks", "trainings", "optimum", "staged", "random", "gain", "found it"):
        view.add_column(column, justify="right")
    for one in found:
        view.add_row(
            f"{one.bops / 1e6:.2f} M",
            str(one.networks),
            f"{one.trainings:.1f}",
            f"{one.optimum:.2f}",
            f"{one.staged:.3f}",
            f"{one.random:.3f}",
            f"{one.gain:+.3f} ± {one.standard_error:.3f}",
            f"{one.staged_found_optimum:.0%} / {one.random_found_optimum:.0%}",
        )
    Console().print(view)


if __name__ == "__main__":
    main()
