"""`ebnet search`: find a network for a budget with the paper's staged procedure."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ebnet.cli.plain import PlainGroup

if TYPE_CHECKING:
    from ebnet.search.settings import Settings
    from ebnet.search.study import Study


class RunByDefault(PlainGroup):
    """`ebnet search RECIPE ...` means `ebnet search run RECIPE ...`: what is no command's name is a recipe."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("--help", "-h"):
            args = ["run", *args]
        return super().parse_args(ctx, args)


search = typer.Typer(
    cls=RunByDefault,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="""Search for a network within a budget: the paper's staged procedure, shared by any number of workers.

    `ebnet search RECIPE --budget bops=2e6 --out STUDY` is short for `ebnet search run RECIPE ...`.""",
)

StudyArgument = Annotated[
    Path, typer.Argument(metavar="STUDY", help="Directory (or, with --storage, name) of a study.")
]
StorageOption = Annotated[
    str | None,
    typer.Option(
        envvar="EBNET_SEARCH_STORAGE",
        show_envvar=False,
        help="postgresql://user@host/database to share a study; a file in STUDY unless given. "
        "The environment variable EBNET_SEARCH_STORAGE says the same.",
    ),
]
BudgetOption = Annotated[
    list[str] | None,
    typer.Option(metavar="COST=LIMIT", help="Limit bops, flops, bytes or latency_ms (measured here); may be repeated."),
]
DataOption = Annotated[Path | None, typer.Option(help="Directory of the data set.")]
WorkersOption = Annotated[int, typer.Option(min=1, help="Processes that train candidates on this machine.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON; progress goes to stderr.")]


@search.command("run")
def run(
    recipe: Annotated[str, typer.Argument(help="A shipped recipe (`ebnet train --list`) or a TOML file.")],
    out: Annotated[Path, typer.Option(metavar="STUDY", help="Directory of the study.")],
    budget: BudgetOption = None,
    base: Annotated[str | None, typer.Option(help="Network to start from. [default: the recipe's]")] = None,
    directions: Annotated[
        str, typer.Option(help="Directions to search, also: aggregation, experts.")
    ] = "arrangement,depth,width,groups",
    per_direction: Annotated[int, typer.Option(help="New networks along each direction, per round.")] = 4,
    combinations: Annotated[int, typer.Option(help="New networks that combine directions, per round.")] = 6,
    rounds: Annotated[int, typer.Option(help="The paper has two.")] = 2,
    epochs: Annotated[
        int | None, typer.Option(help="Epochs of a candidate. [default: a fifth of the recipe's]")
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same candidates.")] = 0,
    prune: Annotated[bool, typer.Option("--prune", help="End hopeless candidates early (successive halving).")] = False,
    max_blocks: Annotated[int | None, typer.Option(help="Most blocks of a stage. [default: 8]")] = None,
    expansions: Annotated[str | None, typer.Option(help="Expansions of a stage, e.g. 0.25,0.5,1.")] = None,
    groups: Annotated[str | None, typer.Option(help="Groups of a stage. [default: 1,2,4,8,16,32]")] = None,
    experts: Annotated[str | None, typer.Option(help="Numbers of experts. [default: 1,4,8]")] = None,
    data: DataOption = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting of the recipe.")
    ] = None,
    storage: StorageOption = None,
    workers: WorkersOption = 1,
    threads: Annotated[int, typer.Option(min=1, help="CPU threads of one training.")] = 1,
    yes: Annotated[bool, typer.Option("--yes", help="Search without a budget, unasked.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Search each direction, combine the promising ones, do so once more, and name the best network.

    Only networks within every budget are trained, with Stage I of the recipe at a reduced schedule. The same command
    again goes on with an interrupted study.

    Examples:

        ebnet search demo --budget bops=2e6 --out studies/digits --workers 2

        ebnet search imagenet --base 2222-1-1:1:1:1 --budget bops=1.75e9 --budget flops=1.2e8 --out studies/a \\
            --storage postgresql://me@db/search --data /data/imagenet

        ebnet search demo --budget latency_ms=0.5 --out studies/fast
    """
    from fractions import Fraction

    from ebnet.search.begin import begin_study, new_settings
    from ebnet.search.budget import parse_budgets
    from ebnet.search.directory import POINTER

    settings = new_settings(
        recipe,
        overrides=set_ or [],
        data=data,
        base=base,
        budgets=parse_budgets(budget or []),
        directions=tuple(directions.split(",")),  # type: ignore[arg-type]
        per_direction=per_direction,
        combinations=combinations,
        rounds=rounds,
        seed=seed,
        epochs=epochs,
        threads=threads,
        prune=prune,
        max_blocks=max_blocks,
        expansions=_numbers("expansions", expansions, Fraction),
        groups=_numbers("groups", groups, int),
        experts=_numbers("experts", experts, int),
    )
    if not budget and not yes and not (out / POINTER).exists():
        _ask_whether_to_train(settings)
    _work(begin_study(settings, out, storage), storage, data, workers, as_json)


def _ask_whether_to_train(settings: "Settings") -> None:
    """A search without a budget has no bound on what its networks cost: ask first, where somebody can answer."""
    count = settings.rounds * (len(settings.directions) * settings.per_direction + settings.combinations)
    each = f"{settings.epochs} epoch{'' if settings.epochs == 1 else 's'} each"
    question = f"Without --budget up to {count} networks of any size are trained, {each}. Go on?"
    if not sys.stdin.isatty():
        raise typer.BadParameter(f"{question} Give a --budget such as bops=2e6, or --yes")
    typer.confirm(question, abort=True)


@search.command("worker")
def worker(study: StudyArgument, storage: StorageOption = None, data: DataOption = None) -> None:
    """Join a study that is running, on this or any machine, and leave when it is finished.

    Example: `ebnet search worker studies/a --storage postgresql://me@db/search --data /mnt/imagenet`
    """
    from ebnet.search.directory import open_study

    _work(open_study(study, storage), storage, data, workers=1, as_json=False, show=False)


@search.command("show")
def show(
    study: StudyArgument,
    storage: StorageOption = None,
    figures: Annotated[Path | None, typer.Option(metavar="DIR", help="Draw the figures there (PNG and SVG).")] = None,
    as_json: JsonOption = False,
) -> None:
    """What a study has found so far: candidates, Pareto front, winner, and which direction paid.

    Example: `ebnet search show studies/a --figures studies/a/figures`
    """
    from ebnet.search.directory import open_study

    _show(open_study(study, storage), as_json)
    if figures is not None:
        from ebnet.search.figures import draw_figures
        from ebnet.search.population import population

        for path in draw_figures(population(open_study(study, storage)), figures):
            typer.echo(str(path), err=as_json)


@search.command("extend")
def extend(
    study: StudyArgument,
    budget: BudgetOption = None,
    rounds: Annotated[int, typer.Option(help="Rounds to add.")] = 1,
    storage: StorageOption = None,
    data: DataOption = None,
    workers: WorkersOption = 1,
    as_json: JsonOption = False,
) -> None:
    """Add rounds to a study, finished or running, from its best network on and under new budgets.

    Example: `ebnet search extend studies/a --budget bops=3e6`
    """
    from ebnet.search.begin import extend_study
    from ebnet.search.budget import parse_budgets
    from ebnet.search.directory import open_study

    opened = open_study(study, storage)
    extend_study(opened, parse_budgets(budget or []), rounds)
    _work(opened, storage, data, workers, as_json)


@search.command("recipe")
def recipe(
    study: StudyArgument,
    out: Annotated[Path, typer.Option("--out", "-o", help="The TOML file to write.")],
    candidate: Annotated[
        str | None, typer.Option(help="Another candidate than the winner, as `show` names it.")
    ] = None,
    storage: StorageOption = None,
) -> None:
    """Turn the winner into a full training recipe.

    Example: `ebnet search recipe studies/a -o winner.toml && ebnet train winner.toml`
    """
    from ebnet.errors import StudyError
    from ebnet.files import write_atomically
    from ebnet.search.candidate import Candidate
    from ebnet.search.directory import open_study
    from ebnet.search.population import population
    from ebnet.search.reduced import full_recipe

    found = population(open_study(study, storage))
    chosen = found.member(Candidate.parse(candidate)) if candidate else found.winner
    if chosen is None:
        raise StudyError(f"{study} has no candidate {candidate!r}" if candidate else f"{study} has no winner yet")
    full = full_recipe(found.decisions.settings.full, chosen.candidate, out.stem)
    write_atomically(out, full.to_toml().encode())
    typer.echo(f"{out}: {chosen.candidate}; train it with `ebnet train {out}`")


@search.command("price")
def price(
    paper: Annotated[bool, typer.Option("--paper", help="All networks of the paper's tables and figures.")] = False,
    input_size: Annotated[int, typer.Option(help="Height and width of the image.")] = 224,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Price the paper's own networks without training: what it prints beside what is counted.

    Example: `ebnet search price --paper`. For other networks see `ebnet summary`.
    """
    import json

    from rich.console import Console

    from ebnet.search.paper import PAPER_NETWORKS
    from ebnet.search.paper_table import paper_rows, paper_table

    if not paper:
        raise typer.BadParameter("say --paper for the paper's networks; `ebnet summary NETWORK` prices any other")
    rows = paper_rows(PAPER_NETWORKS, input_size)
    if as_json:
        typer.echo(json.dumps(rows))
    else:
        Console().print(paper_table(rows))


def _work(
    study: "Study", storage: str | None, data: Path | None, workers: int, as_json: bool, show: bool = True
) -> None:
    """Work on a study, with `workers` processes in all, until it is finished; then show it."""
    from ebnet.errors import Interrupted
    from ebnet.processes import running
    from ebnet.search.evaluate import StageOneTraining
    from ebnet.search.latency import meter_for
    from ebnet.search.worker import Worker

    settings = study.ledger.read().settings
    command = ["ebnet", "search", "worker", str(study.directory), *(["--data", str(data)] if data else [])]
    with running(command, workers - 1, {"EBNET_SEARCH_STORAGE": storage} if storage else {}):
        try:
            evaluator = StageOneTraining(settings, study.directory, data)
            Worker(study, evaluator, meter_for(settings), lambda text: typer.echo(text, err=True)).run()
        except Interrupted as interruption:
            typer.echo(f"{interruption}", err=True)
            raise typer.Exit(128 + interruption.signal) from interruption
    if show:
        _show(study, as_json)


def _show(study: "Study", as_json: bool) -> None:
    import json

    from rich.console import Console

    from ebnet.search.population import population
    from ebnet.search.view import members_table, payoffs_table, summary_lines

    found = population(study)
    if as_json:
        typer.echo(json.dumps(found.to_dict()))
        return
    console = Console()
    console.print(members_table(found))
    console.print(payoffs_table(found))
    for line in summary_lines(found):
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def _numbers(name: str, text: str | None, kind: Any) -> list[Any]:
    try:
        return [kind(part) for part in text.split(",")] if text else []
    except ValueError as error:
        from ebnet.errors import ConfigError

        raise ConfigError(f"--{name} {text}: expected numbers joined by commas") from error
