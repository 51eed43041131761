"""`ebnet demo`: everything once, in minutes."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from ebnet.demo.tour import DemoResult


def demo(
    out: Annotated[Path, typer.Option(help="Where everything goes.")] = Path("demo"),
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a setting of the recipe `demo`; may be repeated."),
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print the result as JSON; progress goes to stderr.")] = False,
) -> None:
    """Train a small expert binary network on real digits, pack, verify and time it, and write the report.

    Works offline. The same command again goes on where it was interrupted.

    Example: `ebnet demo`, then open demo/report.html.
    """
    import json

    from rich.console import Console

    from ebnet.demo.tour import demo as run
    from ebnet.errors import Interrupted
    from ebnet.train.progress import make_reporter

    console = Console(stderr=json_)
    reporter = make_reporter(console)
    try:
        result = run(out, set_ or [], reporter)
    except Interrupted as interruption:
        reporter.say(str(interruption))
        raise typer.Exit(128 + interruption.signal) from interruption
    finally:
        reporter.close()
    if json_:
        typer.echo(json.dumps(result.to_dict()))
    else:
        _show(result, console)


def _show(result: "DemoResult", console: "Console") -> None:
    from rich.box import SIMPLE
    from rich.table import Table

    from ebnet.cost.table import megabytes
    from ebnet.names import spoken
    from ebnet.recipe.phases import title

    table = Table(box=SIMPLE, title="What came out", show_header=False)
    table.add_column(style="dim")
    table.add_column()
    for name, phase in result.phases.items():
        table.add_row(f"top-1, {title(name, result.experts)}", f"{phase.top1:.2%}")
    table.add_section()
    table.add_row("size as 32-bit floats", megabytes(result.float_bytes))
    ratio = result.float_bytes / result.packed_bytes
    table.add_row("size packed", f"{megabytes(result.packed_bytes)}  ({ratio:.1f}x smaller)")
    table.add_section()
    ours = result.bench["peers"][0]["median"]
    for peer in result.bench["peers"]:
        times = "" if peer["name"] == "engine" else f"  ({peer['median'] / ours:.1f}x the engine's time)"
        table.add_row(f"latency, {peer['name']}", f"{1e3 * peer['median']:.2f} ms{times}")
    found = result.verification
    table.add_row(
        "engine against torch",
        f"same class on {found['top1_agreement']:.1%} of {found['images']} test images, "
        f"same experts {found['experts_agreement']:.1%}",
    )
    table.add_section()
    for layer, shares in list(result.usage.items())[-2:]:
        table.add_row(f"experts, {spoken(layer)}", " ".join(f"{share:4.0%}" for share in shares))
    console.print(table)
    out = result.out
    console.print(
        "Where to look next:\n"
        f"  {out / 'report.html'}   open it in a browser: curves, experts, features, costs, speed\n"
        f"  ebnet predict {out / 'net.ebn'} {out / 'digit.png'}   classify an image, without torch\n"
        f"  ebnet serve {out / 'net.ebn'}   draw a digit and watch the experts\n"
        f"  ebnet inspect {out / 'net.ebn'}   what is in the packed file\n"
        "  ebnet train --list   recipes for your own data",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
