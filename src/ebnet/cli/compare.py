"""`ebnet compare`: methods side by side."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ebnet.compare.contest import Contest
    from ebnet.compare.standings import Standing


def compare(
    methods: Annotated[
        list[str] | None,
        typer.Argument(help="Names of `ebnet methods`, or sbaseline; NAME:4 has 4 experts. [default: thirteen]"),
    ] = None,
    recipe: Annotated[
        str, typer.Option(help="A shipped recipe, or a TOML file; its network is the budget.")
    ] = "comparison",
    equal: Annotated[
        str, typer.Option(help="What all may cost at most: ops (BOPs / 64 + FLOPs), bytes, or structure: no budget.")
    ] = "ops",
    data: Annotated[Path | None, typer.Option(help="Directory of the data set.")] = None,
    seeds: Annotated[int, typer.Option(help="Paired runs of each method.", min=1)] = 3,
    jobs: Annotated[int | None, typer.Option(help="Processes. [default: one a core]", min=1)] = None,
    results: Annotated[Path, typer.Option(help="Where the records are kept: JSON, no weights.")] = Path(
        "results/comparison"
    ),
    work: Annotated[Path, typer.Option(help="Where the networks are trained.")] = Path("runs/compare"),
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting of every run.")
    ] = None,
    page: Annotated[
        Path | None, typer.Option(help="Write a page of the standings; its figure goes to figures/ beside it.")
    ] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Train nothing: show the networks, and what there is.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON; progress goes to stderr.")] = False,
) -> None:
    """Train methods under one recipe and one budget, with paired seeds, and rank them.

    Every method gets the widest network that costs no more than the recipe's. What has a record is not run again, so
    the same command goes on after an interruption, and several machines that share the directories share the work.

    Examples:

        ebnet compare --plan

        ebnet compare --data cifar10-folders --page docs/comparison.md

        ebnet compare reactnet-18 reactnet-18:4 --data cifar10-folders --equal structure
    """
    import json
    import os

    from rich.console import Console

    from ebnet.compare.budget import checked
    from ebnet.compare.contest import Contest
    from ebnet.compare.contestants import PREPARED
    from ebnet.compare.standings import standings
    from ebnet.compare.tables import standings_table

    place = None if data is None else data.expanduser().resolve()
    names = tuple(methods or PREPARED)
    contest = Contest(names, recipe, checked(equal), seeds, work, results, place, tuple(set_ or ()))
    if not plan:
        from ebnet.reproduce.observe import carry_out

        carry_out(contest, jobs or os.cpu_count() or 1, Console(stderr=json_))
    rows = standings(contest)
    if page is not None:
        _write(contest, rows, page)
    if json_:
        typer.echo(json.dumps({"recipe": recipe, "equal": equal, "standings": [row.to_dict() for row in rows]}))
    else:
        Console().print(standings_table(contest, rows))


def _write(contest: "Contest", rows: "list[Standing]", path: Path) -> None:
    from ebnet.compare.figure import save_figure
    from ebnet.compare.page import FIGURE
    from ebnet.compare.page import page as written
    from ebnet.files import write_atomically

    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, written(contest, rows).encode())
    if any(row.top1 for row in rows):
        save_figure(rows, path.parent / "figures" / FIGURE)
