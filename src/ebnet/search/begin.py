"""Beginning a study: every choice made and every mistake found before anything is trained."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from ebnet.errors import ConfigError
from ebnet.models.config import NetworkConfig
from ebnet.recipe.settings import Overrides, Recipe, load_recipe
from ebnet.search.budget import Budgets, Prices, primary
from ebnet.search.candidate import Candidate
from ebnet.search.directions import Strategy, best, next_sweep
from ebnet.search.directory import create_directory
from ebnet.search.latency import LatencyMeter
from ebnet.search.reduced import reduced_epochs
from ebnet.search.settings import Settings
from ebnet.search.space import PAPER_DIRECTIONS, Direction, Space
from ebnet.search.storage import open_storage
from ebnet.search.study import Study


def new_settings(
    recipe: str | Path,
    *,
    overrides: Overrides = (),
    data: Path | None = None,
    base: str | None = None,
    budgets: Budgets = (),
    directions: Sequence[Direction] = PAPER_DIRECTIONS,
    per_direction: int = 4,
    combinations: int = 6,
    rounds: int = 2,
    seed: int = 0,
    epochs: int | None = None,
    threads: int = 1,
    prune: bool = False,
    max_blocks: int | None = None,
    expansions: Sequence[Fraction] = (),
    groups: Sequence[int] = (),
    experts: Sequence[int] = (),
) -> Settings:
    """The settings of a new study; raises before any training if something cannot work.

    Args:
        recipe: a shipped recipe or a TOML file; candidates get its Stage I, the winner all of it.
        base: the network to start from; the recipe's own unless given.
        epochs: of a candidate; a fifth of the recipe's unless given.
    """
    chosen = load_recipe(recipe, overrides)
    if base:
        chosen = chosen.changed({"network.arch": base})
    if data:
        chosen = chosen.changed({"data.root": str(data.expanduser().resolve())})
    chosen = chosen.changed({"seed": seed})
    network = shared_network(chosen)
    origin = Candidate.of(network)
    choices = {"max_blocks": max_blocks, "expansions": expansions, "groups": groups, "experts": experts}
    space = Space.around(origin, **{name: _tuple(value) for name, value in choices.items()})
    settings = Settings(
        recipe=chosen.model_dump(mode="json", exclude_none=True),
        network=network.to_dict(),
        space=space.to_dict(),
        directions=tuple(directions),
        per_direction=per_direction,
        combinations=combinations,
        rounds=rounds,
        budgets=budgets,
        seed=seed,
        epochs=epochs if epochs is not None else reduced_epochs(chosen),
        threads=threads,
        prune=prune,
    )
    settings.reduced(origin)
    return settings


def shared_network(recipe: Recipe) -> NetworkConfig:
    """The recipe's network for its data; opening the data finds a missing set now rather than in a worker."""
    from ebnet.train.pictures import Pictures

    pictures = Pictures.open(recipe.data)
    return recipe.network.config(pictures.val.num_classes, pictures.val.channels, recipe.network.experts)


def begin_study(settings: Settings, directory: Path, url: str | None = None) -> Study:
    """Check the budgets, measure the base network if a latency is limited, and create the study or go on with it."""
    measure: LatencyMeter | None = None
    if any(budget.cost == "latency_ms" for budget in settings.budgets):
        measure = LatencyMeter(settings.config, settings.input_size)
        settings = replace(settings, machine=measure.machine)
    prices = Prices(settings.config, settings.input_size, measure=measure)
    check_possible(settings.strategy, settings.budgets, prices)
    reached = open_storage(url) if url else None  # before anything is written
    address = create_directory(directory, url)
    storage = reached or open_storage(address)
    return Study(storage, directory.resolve().name, directory).create(settings)


def extend_study(study: Study, budgets: Budgets, rounds: int) -> Budgets:
    """Add rounds under new budgets; costs that are not named keep theirs. The budgets that hold from now on."""
    decisions = study.ledger.read()
    settings = decisions.settings
    named = {budget.cost: budget for budget in budgets}
    if "latency_ms" in named and settings.machine is None:
        raise ConfigError("the study has no latencies; begin a new one with --budget latency_ms=...")
    if rounds < 1:
        raise ConfigError(f"rounds={rounds}: expected at least 1")
    kept = {budget.cost: budget for budget in decisions.budgets}
    merged = tuple((kept | named).values())
    prices = Prices(settings.config, settings.input_size, dict(decisions.latencies))
    counted = tuple(budget for budget in merged if budget.cost != "latency_ms")
    if best(study.accuracies(), counted, prices) is None:
        check_possible(settings.strategy, counted, prices)
    study.ledger.extension(merged, rounds)
    return merged


def check_possible(strategy: Strategy, budgets: Budgets, prices: Prices) -> None:
    """Raise if the budgets leave nothing to train; the message says what the cheapest network would need."""
    first = next_sweep(strategy, [budgets], [], {}, prices)
    if first is not None and first.proposals:
        return
    moves = [
        target
        for direction in strategy.directions
        for move in strategy.space.moves(strategy.base, direction)
        if (target := move.apply(strategy.base)) is not None
    ]
    cost = primary(tuple(budget for budget in budgets if budget.cost != "latency_ms"))
    cheapest = min([strategy.base, *moves], key=lambda candidate: prices.of(candidate, cost))
    costs = ", ".join(f"{name}={value:.6g}" for name, value in prices.known(cheapest).items())
    raise ConfigError(
        f"no network within {' and '.join(map(str, budgets))}: the cheapest in one step from {strategy.base} is "
        f"{cheapest} with {costs}. Raise the budget or start from a smaller --base"
    )


def _tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list | tuple) else value
