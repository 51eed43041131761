"""`ebnet pack`: a trained network as one file."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console


def pack(
    source: Annotated[Path, typer.Argument(help="A run directory, or a saved network's directory.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write, e.g. net.ebn.")],
    reals: Annotated[str, typer.Option(help="Width of everything that is not one bit: fp32 or fp16.")] = "fp32",
) -> None:
    """Turn a Stage II network into one file that the engine runs without torch.

    Example: `ebnet pack runs/demo -o net.ebn --reals fp16`
    """
    from ebnet.cost.profile import profile
    from ebnet.packing.file import pack as write
    from ebnet.packing.source import open_packable

    packable = open_packable(source)
    write(packable.model, output, reals, packable.preprocessing, packable.labels)  # type: ignore[arg-type]
    cost = profile(packable.model.config)
    counted = cost.bytes_fp16 if reals == "fp16" else cost.bytes_fp32
    size = output.stat().st_size
    Console().print(
        f"{output}: {size / 1e6:.2f} MB ({counted / 1e6:.2f} MB of bits and {reals} reals, the rest is the header); "
        f"next: ebnet verify {output} --against {source}",
        soft_wrap=True,
        highlight=False,
        markup=False,
    )
