"""`ebnet zoo`: the trained networks that come with the package."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ebnet.cli.plain import PlainGroup

zoo = typer.Typer(cls=PlainGroup, help="Trained networks to take away.", rich_markup_mode="markdown")


@zoo.callback(invoke_without_command=True)
def overview(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Print all cards as JSON.")] = False,
) -> None:
    """List the trained networks that come with the package.

    Examples:

        ebnet zoo

        ebnet zoo card digits-e4

        ebnet predict --model digits-e4 digit.png

        ebnet eval zoo:digits-e4
    """
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table

    from ebnet.zoo import cards

    if context.invoked_subcommand is not None:
        return
    if as_json:
        typer.echo(json.dumps([asdict(card) for card in cards().values()]))
        return
    table = Table(box=SIMPLE, pad_edge=False)
    for column in ("name", "what", "network", "N", "top-1", "kB"):
        table.add_column(column, no_wrap=column != "what")
    for card in cards().values():
        size = f"{card.bytes / 1e3:.0f}"
        table.add_row(card.name, card.title, card.arch, str(card.experts), f"{card.top1:.2%}", size)
    Console().print(table)


@zoo.command("card")
def show(name: Annotated[str, typer.Argument(help="A network of the zoo.")]) -> None:
    """Show what a network was trained on and how, what it reaches and what it costs.

    Example: `ebnet zoo card digits-e4`
    """
    from ebnet.report.interval import interval_told
    from ebnet.zoo import card

    found = card(name)
    data = found.data
    typer.echo(f"{found.name}: {found.title}")
    typer.echo(f"  data      {data['name']} at {data['size']} pixels; {found.licence}")
    typer.echo(f"  training  {found.command}")
    if found.seconds is not None:
        typer.echo(f"            {found.seconds / 3600:.2f} hours")
    for stage, top1 in found.stages.items():
        typer.echo(f"  {stage:17} top-1 {top1:.2%}")
    sure = interval_told(found.top1, found.pictures)
    typer.echo(
        f"  {'in the engine':17} top-1 {found.top1:.2%} of {found.pictures:,} validation images ({sure} at 95 %)"
    )
    typer.echo(f"  network   {found.arch}, {found.experts} experts, {found.bops:,} BOPs, {found.flops:,} FLOPs")
    typer.echo(f"  file      {found.bytes:,} bytes")


@zoo.command("sample")
def sample(
    out: Annotated[Path, typer.Option("--out", "-o", help="The PNG file to write.")] = Path("digit.png"),
) -> None:
    """Write a hand-written digit to try `digits-e4` with; it was not trained on it.

    Example: `ebnet zoo sample && ebnet predict --model digits-e4 digit.png`
    """
    from ebnet.files import require_folder, write_atomically
    from ebnet.zoo import HOME, SAMPLE

    require_folder(out)
    write_atomically(out, (HOME / SAMPLE).read_bytes())
    typer.echo(f"{out}: a hand-written digit of 28x28 pixels; `ebnet predict --model digits-e4 {out}` reads it")


@zoo.command("add")
def add(
    run: Annotated[Path, typer.Argument(help="Directory of a finished run.")],
    name: Annotated[str, typer.Argument(help="What to call it.")],
    title: Annotated[str, typer.Option(help="What it tells apart, in a few words.")],
    into: Annotated[Path | None, typer.Option(help="Where to write it. [default: the package itself]")] = None,
) -> None:
    """Pack a finished run, evaluate the file in the engine and write it with its card.

    Example: `ebnet zoo add runs/demo digits-e4 --title "ten digits"`
    """
    from ebnet.publish.publish import publish
    from ebnet.zoo import HOME

    directory = into or HOME
    directory.mkdir(parents=True, exist_ok=True)
    card = publish(run, name, title, directory)
    typer.echo(f"{directory / name}.ebn: {card.bytes:,} bytes, top-1 {card.top1:.2%} in the engine")
