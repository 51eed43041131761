"""`ebnet results`: the page of results from the records."""

from pathlib import Path
from typing import Annotated

import typer


def results(
    directory: Annotated[Path, typer.Argument(help="Where `ebnet reproduce` keeps its records.")] = Path("results"),
    out: Annotated[Path, typer.Option("--out", "-o", help="The page; its figures go to figures/ beside it.")] = Path(
        "docs/results.md"
    ),
) -> None:
    """Write the page of results: verdicts, tables and figures, all computed from the records.

    Example: `ebnet results results -o docs/results.md`
    """
    from ebnet.errors import DataError
    from ebnet.files import write_atomically
    from ebnet.reproduce.claim import CHAPTERS, claim_names, load_claim
    from ebnet.reproduce.document import document
    from ebnet.reproduce.figures import save_figure
    from ebnet.reproduce.records import Records
    from ebnet.reproduce.routing_figure import has_routing, save_routing
    from ebnet.reproduce.verdict import judge

    if not (directory / "runs").is_dir():
        raise DataError(f"{directory} holds no records; `ebnet reproduce all` makes them")
    records, pilots = Records(directory), Records(directory / "pilots")
    out.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(out, document(records, pilots).encode())
    for name in (name for chapter in CHAPTERS for name in claim_names(chapter)):
        claim = load_claim(name)
        judgement = judge(claim, pilots if claim.chapter == "pilots" else records)
        if judgement.tried:
            save_figure(judgement, out.parent / "figures" / f"results-{name}.svg")
            if has_routing(judgement):
                save_routing(judgement, out.parent / "figures" / f"results-{name}-routing.svg")
    typer.echo(f"{out}: written from {sum(1 for _ in directory.glob('**/runs/*.json'))} records")
