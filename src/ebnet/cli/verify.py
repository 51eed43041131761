"""`ebnet verify`: the packed file against the torch model."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    import numpy as np

    from ebnet.packing.verify import Verification
    from ebnet.runtime.engine import Engine


def verify(
    file: Annotated[Path, typer.Argument(help="A packed file.")],
    against: Annotated[Path, typer.Option(help="The run or saved network it was packed from.")],
    data: Annotated[
        Path | None,
        typer.Option(
            help="A directory of images; else the run's validation images, else images grown from the network."
        ),
    ] = None,
    images: Annotated[int, typer.Option(help="At most this many images.", min=1)] = 64,
    agreement: Annotated[float, typer.Option(help="Least top-1 agreement to pass.", min=0, max=1)] = 0.999,
    threads: Annotated[int, typer.Option(help="Threads of the engine.", min=1)] = 1,
    stream: Annotated[str, typer.Option(help="The engine's residual stream: fp32, fp16 or bf16.")] = "fp32",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare engine and torch: tensors, logits, top-1, experts, and layer by layer where they first differ.

    Torch computes with the numbers as the file rounds them, so that fp16 is judged as strictly as fp32. Exit code 1
    where a tensor of the file is not the network's, where top-1 agreement is too low, or where a difference is not
    explained by a pre-sign value within float error of 0 or a gate's tie.

    Example: `ebnet verify net.ebn --against runs/demo --data photos/`
    """
    from ebnet.packing.source import open_packable
    from ebnet.packing.verify import verify as compare
    from ebnet.runtime.engine import load

    engine = load(file, threads, stream)
    found = compare(engine, open_packable(against).model, _images(engine, against, data, images))
    passed = found.top1_agreement >= agreement and found.passed
    if as_json:
        print(json.dumps(found.to_dict() | {"passed": passed}))
    else:
        _show(found, engine, passed)
    if not passed:
        raise typer.Exit(1)


def _images(engine: "Engine", run: Path, data: Path | None, count: int) -> "np.ndarray":
    """Normalised images: of a directory, of the run's validation set, or grown."""
    from ebnet.cli.sample_images import folder_images, validation_images

    rules: Any = engine.preprocessing
    if data is not None:
        return folder_images(rules, data, count)
    found = validation_images(run, count)
    if found is not None and found.shape[1:] == (rules.in_channels, rules.size, rules.size):
        return found
    from ebnet.packing.inputs import grown_images

    return grown_images(engine, count)


def _show(found: "Verification", engine: "Engine", passed: bool) -> None:
    console = Console()
    table = Table("layer", "near 0", "signs differ", "output differs", "experts differ", title="layers that differ")
    for row in found.layers:
        if row.flipped or row.experts_differ:
            table.add_row(
                escape(row.name),
                str(row.near_zero),
                str(row.flipped),
                f"{row.max_difference:.1e}",
                str(row.experts_differ),
            )
    if table.row_count:
        console.print(table)
    if found.tensors_differ:
        names = ", ".join(found.tensors_differ[:8]) + (", ..." if len(found.tensors_differ) > 8 else "")
        console.print(f"{len(found.tensors_differ)} tensors are not the network's: {escape(names)}", highlight=False)
    near = sum(row.near_zero for row in found.layers)
    experts = f"{found.experts_reached} of {sum(engine.expert_counts)} experts"
    console.print(
        f"{found.images} images, which reach {found.classes_reached} of {engine.classes} classes and {experts}\n"
        f"top-1 agreement {found.top1_agreement:.2%}, experts {found.experts_agreement:.2%}; "
        f"logits differ by at most {found.max_absolute:.2e} ({found.max_relative:.2e} relative)\n"
        f"within tolerance: {found.within_tolerance}; explained by a sign within float error of 0: {found.explained}; "
        f"unexplained: {found.unexplained}; pre-sign values that near to 0: {near}\n"
        f"{'passed' if passed else 'FAILED'}",
        highlight=False,
    )
