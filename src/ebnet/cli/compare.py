"""`ebnet compare`: methods side by side."""

from pathlib import Path
from typing import Annotated

import typer


def compare(
    methods: Annotated[
        list[str] | None,
        typer.Argument(
            help="Names of `ebnet methods`, or sbaseline; NAME:4 has 4 experts within the budget, NAME+4 on top of "
            "NAME's network. [default: thirteen]"
        ),
    ] = None,
    recipe: Annotated[
        str, typer.Option(help="A shipped recipe, or a TOML file; its network is the budget.")
    ] = "comparison",
    equal: Annotated[
        str,
        typer.Option(
            help="What all may cost at most: ops (BOPs / 64 + FLOPs), bytes, milliseconds (in the engine, one thread, "
            "measured here), or structure: no budget."
        ),
    ] = "ops",
    data: Annotated[Path | None, typer.Option(help="Directory of the data set.")] = None,
    seeds: Annotated[int, typer.Option(help="Paired runs of each method.", min=1)] = 3,
    with_experts: Annotated[
        bool, typer.Option("--with-experts", help="Then train the best of one bit with 4 experts too: NAME+4.")
    ] = False,
    jobs: Annotated[int | None, typer.Option(help="Processes. [default: one a core]", min=1)] = None,
    results: Annotated[Path, typer.Option(help="Where the records are kept: JSON, no weights.")] = Path(
        "results/comparison"
    ),
    work: Annotated[Path, typer.Option(help="Where the networks are trained.")] = Path("runs/compare"),
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting of every run.")
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(help="Write a page of all standings in --results; its figures go to figures/ beside it."),
    ] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Train nothing: show the networks, and what there is.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON; progress goes to stderr.")] = False,
) -> None:
    """Train methods under one recipe and one budget, with paired seeds, and rank them.

    Every method gets the widest network that costs no more than the recipe's. What has a record is not run again, so
    the same command goes on after an interruption, and several machines that share the directories share the work.
    `ebnet report results/comparison` shows the standings with plots.

    Examples:

        ebnet compare --plan

        ebnet compare --data cifar10-folders --with-experts --page docs/comparison.md

        ebnet compare bnn reactnet-18 --data cifar10-folders --equal milliseconds

        ebnet compare --recipe comparison-20 --data cifar10-folders
    """
    import json
    import os
    from dataclasses import replace

    from rich.console import Console

    from ebnet.compare.budget import checked
    from ebnet.compare.contest import Contest
    from ebnet.compare.contestants import PREPARED
    from ebnet.compare.standings import standings
    from ebnet.compare.summary import summary, with_experts_of, write_summary
    from ebnet.compare.tables import standings_table
    from ebnet.report.comparison import plain

    place = None if data is None else data.expanduser().resolve()
    names = tuple(methods or PREPARED)
    contest = Contest(names, recipe, checked(equal), seeds, work, results, place, tuple(set_ or ()))
    contest.prepare()
    if not plan:
        from ebnet.reproduce.observe import carry_out

        console, processes = Console(stderr=json_), jobs or os.cpu_count() or 1
        carry_out(contest, processes, console)
        best = with_experts_of(standings(contest)) if with_experts else None
        if best is not None:
            more = replace(contest, methods=(str(best),))
            more.prepare()
            carry_out(more, processes, console)
    told = summary(contest)
    if page is not None or not plan:
        write_summary(contest, told)
    if page is not None:
        _write(results, page)
    if json_:
        typer.echo(json.dumps(told))
        return
    Console().print(standings_table(told))
    for note in told["notes"][1:]:
        Console().print(plain(note), highlight=False, markup=False)


def _write(results: Path, path: Path) -> None:
    from ebnet.compare.page import figure_name
    from ebnet.compare.page import page as written
    from ebnet.files import write_atomically
    from ebnet.report.comparison import read_summaries, strips
    from ebnet.report.plots import save_figure

    told = read_summaries(results)
    (path.parent / "figures").mkdir(parents=True, exist_ok=True)
    write_atomically(path, written(told).encode())
    for summary in told:
        if summary["seeds"]:
            save_figure(strips(summary), path.parent / "figures" / figure_name(summary))
