"""`ebnet bench`: how fast a packed file runs here."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from ebnet.runtime.bench import Bench


def bench(
    file: Annotated[Path, typer.Argument(help="A packed file.")],
    threads: Annotated[list[int] | None, typer.Option(help="Thread counts; give it several times for several.")] = None,
    batch: Annotated[list[int] | None, typer.Option(help="Batch sizes; give it several times for several.")] = None,
    size: Annotated[int | None, typer.Option(help="Side of the images; the network's own by default.", min=1)] = None,
    stream: Annotated[str, typer.Option(help="The residual stream's type: fp32, fp16 or bf16.")] = "fp32",
    seconds: Annotated[float, typer.Option(help="Time for each measurement.", min=0)] = 1.0,
    ops: Annotated[bool, typer.Option(help="Show the profile of the ops.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure latency at batch 1, throughput at larger batches, and each op's time, GMAC/s and share.

    Example: `ebnet bench net.ebn --threads 1 --threads 2 --batch 1 --batch 32`
    """
    from ebnet.runtime.bench import bench as measure

    found = measure(file, tuple(threads or (1,)), tuple(batch or (1, 8, 32)), size, seconds, stream)
    if as_json:
        print(json.dumps(found.to_dict()))
        return
    console = Console()
    times = Table(box=SIMPLE, padding=(0, 1, 0, 0))
    for column in ("threads", "batch", "min ms", "median ms", "p90 ms", "p99 ms", "images/s", "runs"):
        times.add_column(column, justify="right", no_wrap=True)
    times.title = f"{escape(found.path)}: {found.size}x{found.size}, {found.isa} kernels, {found.stream} stream"
    for t in found.timings:
        spread = (f"{value * 1e3:#.3g}" for value in (t.minimum, t.median, t.p90, t.p99))
        times.add_row(str(t.threads), str(t.batch), *spread, f"{t.images_per_second:,.0f}", str(t.runs))
    console.print(times)
    if ops:
        console.print(_profile(found))


def _profile(found: "Bench") -> Table:
    """In 80 columns, no name cut: a kernel's name says what kind of op it is."""
    profile = Table(title="ops at batch 1", box=SIMPLE, padding=(0, 1, 0, 0))
    for column in ("op", "kernel", "output", "µs", "share", "GMAC/s"):
        profile.add_column(column, justify="left" if column in ("op", "kernel") else "right", no_wrap=True)
    for op in found.ops:
        speed = f"{op.gmacs_per_second:.1f}" if op.gmacs_per_second else ""
        shape = "x".join(map(str, op.shape))
        cells = (escape(op.name), op.kernel or op.kind, shape, f"{op.seconds * 1e6:.1f}", f"{op.share:.1%}", speed)
        profile.add_row(*cells)
    return profile
