"""`ebnet results`: the page of results from the records."""

from pathlib import Path
from typing import Annotated

import typer


def results(
    directory: Annotated[
        Path | None, typer.Argument(help="Where `ebnet reproduce` keeps its records; without it, the shipped verdicts.")
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The page of DIRECTORY; its figures go to figures/ beside it.")
    ] = Path("docs/results.md"),
    times: Annotated[
        bool,
        typer.Option(
            "--times",
            help="Measure the engine's time of the networks in the opening figure first: DIRECTORY/times.json.",
        ),
    ] = False,
) -> None:
    """Show how the paper's claims came out; or write the page about it from records: verdicts, tables, figures.

    Examples: `ebnet results`, or `ebnet results results -o docs/results.md`
    """
    if directory is None:
        if times:
            raise typer.BadParameter("--times measures for a page: give the directory of the records too")
        _show_shipped()
    else:
        _write_page(directory, out, times)


def _show_shipped() -> None:
    from rich.console import Console

    from ebnet.reproduce.shipped import shipped_verdicts
    from ebnet.reproduce.tables import listing, score
    from ebnet.reproduce.words import NOT_RUN

    verdicts, console = shipped_verdicts(), Console()
    for chapter, title in {
        "claims": "where they can show: 50,000 images",
        "why": "what holds experts and width back there",
        "second": "a second look, with more classes",
        "short": "where data is short: 9,469 images",
    }.items():
        tried = [claim for claim in verdicts if claim["chapter"] == chapter and claim["verdict"] != NOT_RUN]
        if tried:
            table = listing(tried)
            table.title = title
            console.print(table)
    typer.echo(score(verdicts))


def _write_page(directory: Path, out: Path, times: bool) -> None:
    from ebnet.errors import DataError
    from ebnet.files import write_atomically
    from ebnet.reproduce.claim import CHAPTERS, claim_names, load_claim
    from ebnet.reproduce.document import document
    from ebnet.reproduce.figures import save_figure
    from ebnet.reproduce.opening import FIGURE, measure_shown, points, save_opening
    from ebnet.reproduce.records import Records
    from ebnet.reproduce.routing_figure import has_routing, save_routing
    from ebnet.reproduce.verdict import judge

    if not (directory / "runs").is_dir():
        raise DataError(f"{directory} holds no records; `ebnet reproduce all` makes them")
    if times:
        typer.echo(f"{measure_shown(directory)}: measured")
    records, pilots = Records(directory), Records(directory / "pilots")
    out.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(out, document(records, pilots).encode())
    if reached := points(records):
        save_opening(reached, directory, out.parent / "figures" / FIGURE)
    for name in (name for chapter in CHAPTERS for name in claim_names(chapter)):
        claim = load_claim(name)
        judgement = judge(claim, pilots if claim.chapter == "pilots" else records)
        if judgement.tried:
            save_figure(judgement, out.parent / "figures" / f"results-{name}.svg")
            if has_routing(judgement):
                save_routing(judgement, out.parent / "figures" / f"results-{name}-routing.svg")
    typer.echo(f"{out}: written from {sum(1 for _ in directory.glob('**/runs/*.json'))} records")
