"""`ebnet predict`: classify image files with a packed network."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table


def predict(
    files: Annotated[
        list[Path], typer.Argument(metavar="[FILE] IMAGE...", help="A packed file, unless --model names one; images.")
    ],
    model: Annotated[str | None, typer.Option(help="A trained network of the zoo (`ebnet zoo` lists them).")] = None,
    top: Annotated[int, typer.Option(help="Classes to show for each image.", min=1)] = 5,
    threads: Annotated[int, typer.Option(help="Threads.", min=1)] = 1,
    stream: Annotated[str, typer.Option(help="The residual stream's type: fp32, fp16 or bf16.")] = "fp32",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: a list, one entry an image.")] = False,
) -> None:
    """Classify images: the most probable classes of each, without torch.

    Examples: `ebnet predict net.ebn cat.jpg dog.jpg`, `ebnet predict --model digits-e4 digit.png`
    """
    from ebnet.runtime.engine import load
    from ebnet.zoo import PREFIX

    file, images = (files[0], files[1:]) if model is None else (f"{PREFIX}{model}", files)
    if not images:
        raise typer.BadParameter(f"{file} and which images? Or name a network of the zoo with --model")
    predictions = load(file, threads, stream).predict(images, top)
    if as_json:
        rows = [{"image": str(path)} | asdict(found) for path, found in zip(images, predictions, strict=True)]
        print(json.dumps(rows))
        return
    for path, found in zip(images, predictions, strict=True):
        table = Table("class", "probability", title=escape(str(path)))
        for label, probability in zip(found.labels, found.probabilities, strict=True):
            table.add_row(escape(label), f"{probability:.1%}")
        Console().print(table)
