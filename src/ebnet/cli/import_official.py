"""`ebnet import-official`: the authors' released checkpoint as one of our networks."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console


def import_official(
    file: Annotated[Path, typer.Argument(help="The released state dict: torch's format or safetensors.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Directory for config.json and model.safetensors.")],
) -> None:
    """Read the authors' public ImageNet weights and save them as an ebnet network.

    The file is read without running code from it. Wrong or missing keys come as one list.

    Example: `ebnet import-official ebconv_1262.pth -o official/`
    """
    from ebnet.models.official import import_official, read_official

    model = import_official(read_official(file))
    model.save_pretrained(out)
    config = model.config
    Console().print(f"{config.arch}, {config.experts} experts, {config.num_classes} classes -> {out}", markup=False)
