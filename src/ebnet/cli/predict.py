"""`ebnet predict`: classify image files with a packed network."""

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table


def predict(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="[FILE] IMAGE...",
            help="A packed file, unless --model names one; then images, and with -o folders and tar shards too.",
        ),
    ],
    model: Annotated[str | None, typer.Option(help="A trained network of the zoo (`ebnet zoo` lists them).")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="TABLE", help="Write a table of all images: TABLE.parquet, .csv or .jsonl."
        ),
    ] = None,
    top: Annotated[int | None, typer.Option(help="Classes for each image: 5, or 1 in a table.", min=1)] = None,
    invert: Annotated[bool, typer.Option("--invert", help="Swap dark and light: for ink on paper.")] = False,
    processes: Annotated[int | None, typer.Option(help="Of a table; as many as cores if not given.", min=1)] = None,
    threads: Annotated[int, typer.Option(help="Threads.", min=1)] = 1,
    stream: Annotated[str, typer.Option(help="The residual stream's type: fp32, fp16 or bf16.")] = "fp32",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: a list, one entry an image.")] = False,
) -> None:
    """Classify images: the most probable classes of each, without torch.

    With `-o`, any number of them: whole folders and tar shards become one table, on all cores. The same command goes on
    where it was stopped.

    Examples: `ebnet predict net.ebn cat.jpg dog.jpg`, `ebnet predict --model digits-e4 digit.png`,
    `ebnet predict net.ebn images/ shards/*.tar -o predictions.parquet`
    """
    from ebnet.runtime.engine import load
    from ebnet.zoo import PREFIX

    file, images = (str(files[0]), files[1:]) if model is None else (f"{PREFIX}{model}", files)
    if not images:
        raise typer.BadParameter(f"{file} and which images? Or name a network of the zoo with --model")
    if out is not None:
        _table(file, images, out, top or 1, processes, as_json)
        return
    if many := [path for path in images if path.is_dir() or path.suffix == ".tar"]:
        raise typer.BadParameter(f"{many[0]} holds many images: say with -o which table they go to")
    predictions = load(file, threads, stream).predict(images, top or 5, invert)
    if as_json:
        rows = [{"image": str(path)} | asdict(found) for path, found in zip(images, predictions, strict=True)]
        print(json.dumps(rows))
        return
    for path, found in zip(images, predictions, strict=True):
        table = Table("class", "probability", title=escape(str(path)))
        for label, probability in zip(found.labels, found.probabilities, strict=True):
            table.add_row(escape(label), f"{probability:.1%}")
        Console().print(table)


def _table(file: str, images: list[Path], out: Path, top: int, processes: int | None, as_json: bool) -> None:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from ebnet.bulk import predict_all

    begin, before = time.monotonic(), list[int]()
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("images", total=None, rate="")

        def advance(done: int, of: int) -> None:
            before.append(done)  # the first is what an earlier call had done
            rate = (done - before[0]) / (time.monotonic() - begin)
            progress.update(task, completed=done, total=of, rate=f"{rate:.0f} images/s")

        outcome = predict_all(file, images, out, top=top, processes=processes, on_images=advance)
    seconds = time.monotonic() - begin
    if as_json:
        print(json.dumps(asdict(outcome) | {"table": str(out), "seconds": seconds}))
        return
    rate = f", {(outcome.images - outcome.taken_up) / seconds:,.0f} images/s"
    fate = f", {outcome.unreadable} of them unreadable (see the column `error`)" if outcome.unreadable else ""
    again = f" ({outcome.taken_up} from before the stop)" if outcome.taken_up else ""
    typer.echo(f"{out}: {outcome.images:,} image{'' if outcome.images == 1 else 's'}{again}{fate}{rate}")
