"""`ebnet data`: what data there is, getting more, and how fast it comes."""

import json
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from ebnet.cli.plain import PlainGroup

data = typer.Typer(
    cls=PlainGroup, help="List, fetch and time data sets.", no_args_is_help=True, rich_markup_mode="markdown"
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON value instead of text.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="A data set's name; `ebnet data list` shows them.")]


@data.command("list")
def list_sets(as_json: Json = False) -> None:
    """Show every data set, and where it was found on this machine.

    Example: `ebnet data list`
    """
    from rich.table import Column, Table

    from ebnet.data.catalogue import CATALOGUE

    rows = []
    for entry in CATALOGUE.values():
        found = entry.find()
        where = None if found is None else "built in" if found == Path() else str(found)
        rows.append({"name": entry.name, "summary": entry.summary, "found": where, "advice": entry.advice})
    if as_json:
        typer.echo(json.dumps(rows))
        return
    table = Table("name", "what it is", Column("where it is, or how to get it", overflow="fold"))
    for row in rows:
        place = f"[green]{row['found']}[/]" if row["found"] else f"[dim]{row['advice']}[/]"
        table.add_row(row["name"], row["summary"], place)
    Console().print(table)


@data.command("fetch")
def fetch_set(
    name: Name,
    root: Annotated[Path | None, typer.Option(help="Where to put it; else $EBNET_DATA or ~/.cache/ebnet.")] = None,
) -> None:
    """Download a data set, check its sum and unpack it. Run it again to go on after an interruption.

    Example: `ebnet data fetch cifar100`
    """
    from ebnet.data.fetch import fetch

    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn()
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as progress:
        tasks: dict[str, int] = {}

        def report(file: str, done: int, total: int | None) -> None:
            task = tasks.setdefault(file, -1)
            if task < 0:
                task = tasks[file] = progress.add_task(file)
            progress.update(task, completed=done, total=total)  # type: ignore[arg-type]

        directory = fetch(name, root, report)
    typer.echo(f"{name} is in {directory}")


@data.command("bench")
def bench_set(
    name: Name,
    root: Annotated[
        Path | None, typer.Option(help="The data set's directory, where it is not found by itself.")
    ] = None,
    split: Annotated[str, typer.Option(help="train or val.")] = "train",
    size: Annotated[int | None, typer.Option(help="Side of the images made; else their own, or 224.")] = None,
    crop: Annotated[
        Literal["resized", "pad", "centre"], typer.Option(help="Random resized crop, pad and crop, or test time's.")
    ] = "resized",
    in_memory: Annotated[bool, typer.Option(help="Decode everything once before, at `--size`.")] = False,
    batch_size: Annotated[int, typer.Option(min=1)] = 128,
    workers: Annotated[int, typer.Option(min=0, help="Processes that decode; 0 decodes in this one.")] = 0,
    seconds: Annotated[float, typer.Option(min=0.1, help="How long to measure.")] = 5.0,
    as_json: Json = False,
) -> None:
    """Measure images/s of the data alone: decoding, augmentation, normalisation.

    Example: `ebnet data bench folder --root imagenette2-160 --size 64 --workers 2`
    """
    from ebnet.data import ArrayDataset, CentreCrop, Loader, Normalise, PadCrop, RandomResizedCrop, open_dataset
    from ebnet.data.bench import measure

    dataset = open_dataset(name, root, split)  # type: ignore[arg-type]
    side = size or (dataset.images.shape[1] if isinstance(dataset, ArrayDataset) else 224)
    if in_memory:
        dataset = dataset.in_memory(side, workers)
    transform = {"resized": RandomResizedCrop, "pad": PadCrop, "centre": CentreCrop}[crop](side)
    normalise = Normalise(dataset.statistics.mean, dataset.statistics.std)
    loader = Loader(dataset, transform, batch_size, shuffle=True, workers=workers, normalise=normalise)
    throughput = measure(loader, seconds)
    settings = {"name": name, "split": split, "size": side, "crop": crop, "in_memory": in_memory, "workers": workers}
    if as_json:
        typer.echo(json.dumps({**settings, "batch_size": batch_size, **throughput.to_dict()}))
    else:
        typer.echo(f"{throughput.images_per_second:,.0f} images/s  ({side}x{side}, {crop} crop, {workers} workers)")
