"""`ebnet reproduce`: try the paper's claims."""

from pathlib import Path
from typing import Annotated, Any

import typer


def reproduce(
    claims: Annotated[
        list[str] | None, typer.Argument(help="Names or numbers (see --list), or all, why, second, short, pilots.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Directory of the data set.")] = None,
    seeds: Annotated[
        int | None,
        typer.Option(help="Paired runs of each variant; a verdict needs 3. [default: what the claim says]", min=1),
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="Processes. [default: one a core]", min=1)] = None,
    results: Annotated[Path, typer.Option(help="Where the records are kept: JSON, no weights.")] = Path("results"),
    work: Annotated[Path, typer.Option(help="Where the networks are trained.")] = Path("runs/reproduce"),
    deciding: Annotated[bool, typer.Option("--deciding", help="Only the variants that a verdict rests on.")] = False,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting of every run.")
    ] = None,
    list_: Annotated[
        bool, typer.Option("--list", help="List the claims and their verdicts: of --results, else those shipped.")
    ] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON; progress goes to stderr.")] = False,
) -> None:
    """Try claims of the paper: train every variant with several seeds, and judge by rule.

    Stages that variants share are trained once. What has a record is not run again, so the same command goes on after
    an interruption, and several machines that share the directories share the work.

    Examples:

        ebnet reproduce --list

        ebnet reproduce experts condconv --data cifar10-folders --work /scratch/reproduce

        ebnet reproduce expansion --data cifar10-folders --deciding     # the shortest way to its verdict

        ebnet reproduce all --data cifar10-folders --set schedule.epochs=40 --results results-long

        ebnet reproduce short --data imagenette     # the first trials, where data is short
    """
    import json
    import os

    from rich.console import Console

    from ebnet.reproduce.tables import listing, score

    if not claims and not list_:
        raise typer.BadParameter("which claims? `ebnet reproduce --list` shows them; `all` takes every one")
    overrides = tuple(set_ or ())
    if list_ and not overrides and not (results / "runs").is_dir():
        from ebnet.reproduce.shipped import named_verdicts, shipped_verdicts

        summaries = named_verdicts(claims or ["all"])
        source = f"From the records behind this version of ebnet. {score(shipped_verdicts())}"
    else:
        wanted = tuple(dict.fromkeys(found for name in claims or ["all"] for found in _claims_of(name)))
        if not list_:
            from ebnet.reproduce.observe import carry_out
            from ebnet.reproduce.order import Order

            place = None if data is None else data.expanduser().resolve()
            order = Order(wanted, seeds, work, results, place, overrides, deciding)
            carry_out(order, jobs or os.cpu_count() or 1, Console(stderr=json_))
        summaries, source = _judged(wanted, results, overrides), f"From the records in {results}."
    if json_:
        typer.echo(json.dumps(summaries))
    else:
        Console().print(listing(summaries))
        Console().print(source, highlight=False, markup=False)


def _judged(wanted: tuple[str, ...], results: Path, overrides: tuple[str, ...]) -> list[dict[str, Any]]:
    from ebnet.reproduce.claim import load_claim
    from ebnet.reproduce.records import Records
    from ebnet.reproduce.tables import summary
    from ebnet.reproduce.verdict import judge

    return [summary(judge(load_claim(name), Records(results), overrides)) for name in wanted]


def _claims_of(name: str) -> list[str]:
    """One claim, or all of a chapter."""
    from ebnet.reproduce.claim import claim_names, load_claim

    match name:
        case "all":
            return claim_names()
        case "why" | "second" | "short" | "pilots":
            return claim_names(name)
    return [load_claim(name).name]
