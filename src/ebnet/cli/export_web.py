"""`ebnet export-web`: a packed file as a web page that needs no server."""

from pathlib import Path
from typing import Annotated

import typer


def export_web(
    file: Annotated[str, typer.Argument(help="A packed file, or zoo:NAME.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write.")],
) -> None:
    """Write a static folder: a page to draw, drop or film, with the network and the engine inside.

    Put it on any web host. It runs wholly in the browser (WebAssembly): no image leaves the page, and once seen it
    opens without a network too. To look at it here: `python -m http.server -d web-page`

    Examples:

        ebnet export-web zoo:digits-e4 -o web-page

        ebnet export-web net.ebn -o web-page
    """

    from ebnet.web.site import export

    written = export(file, output)
    size = sum(path.stat().st_size for path in written)
    typer.echo(f"{output}: {len(written)} files, {size / 1000:.0f} kB; `python -m http.server -d {output}` shows it")
