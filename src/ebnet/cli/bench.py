"""`ebnet bench`: how fast a packed file runs here."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table


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
    times = Table("threads", "batch", "min ms", "median ms", "p90 ms", "p99 ms", "images/s", "runs")
    times.title = f"{found.path}: {found.size}x{found.size}, {found.isa} kernels, {found.stream} stream"
    for t in found.timings:
        spread = (f"{value * 1e3:.2f}" for value in (t.minimum, t.median, t.p90, t.p99))
        times.add_row(str(t.threads), str(t.batch), *spread, f"{t.images_per_second:.0f}", str(t.runs))
    console.print(times)
    if ops:
        profile = Table("op", "kind", "kernel", "output", "us", "share", "GMAC/s", title="ops at batch 1")
        for op in found.ops:
            speed = f"{op.gmacs_per_second:.1f}" if op.gmacs_per_second else ""
            shape = "x".join(map(str, op.shape))
            profile.add_row(
                escape(op.name), op.kind, op.kernel, shape, f"{op.seconds * 1e6:.0f}", f"{op.share:.1%}", speed
            )
        console.print(profile)
