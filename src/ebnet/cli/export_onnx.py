"""`ebnet export-onnx`: the network for other runtimes."""

from pathlib import Path
from typing import Annotated

import typer


def export_onnx(
    source: Annotated[Path, typer.Argument(help="A run directory, or a saved network's directory.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write, e.g. net.onnx.")],
) -> None:
    """Write a Stage II network as ONNX (dynamic batch and size), for everybody else's runtime.

    Example: `ebnet export-onnx runs/demo -o net.onnx`
    """
    from ebnet.packing.onnx import export_onnx as write
    from ebnet.packing.source import open_packable

    write(open_packable(source).model, output)
    typer.echo(f"{output}: {output.stat().st_size / 1e6:.2f} MB, input images, output logits")
