"""`ebnet serve`: a packed file behind a local web page."""

from pathlib import Path
from typing import Annotated

import typer


def serve(
    file: Annotated[Path, typer.Argument(help="A packed file.")],
    port: Annotated[int, typer.Option(help="Port; 0 takes a free one.", min=0, max=65535)] = 8000,
    host: Annotated[str, typer.Option(help="Address; anything but loopback lets others in.")] = "127.0.0.1",
    threads: Annotated[int, typer.Option(help="Threads of the engine.", min=1)] = 1,
) -> None:
    """Open a page where one drops an image or draws a digit and sees the classes, the experts and the latency.

    Beside it, JSON: `curl --data-binary @digit.png http://127.0.0.1:8000/predict`

    Example: `ebnet serve demo/net.ebn`
    """
    from ebnet.runtime.engine import load
    from ebnet.serve.server import run

    engine = load(file, threads)
    run(engine, host, port, lambda url: typer.echo(f"{file} is at {url}  (Ctrl-C ends)"))
