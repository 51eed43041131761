"""`ebnet verify`: the packed file against the torch model."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    import numpy as np

    from ebnet.packing.verify import Verification
    from ebnet.runtime.engine import Engine

IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".webp")


def verify(
    file: Annotated[Path, typer.Argument(help="A packed file.")],
    against: Annotated[Path, typer.Option(help="The run or saved network it was packed from.")],
    data: Annotated[Path | None, typer.Option(help="A directory of images; without it, random images.")] = None,
    images: Annotated[int, typer.Option(help="At most this many images.", min=1)] = 64,
    agreement: Annotated[float, typer.Option(help="Least top-1 agreement to pass.", min=0, max=1)] = 0.999,
    threads: Annotated[int, typer.Option(help="Threads of the engine.", min=1)] = 1,
    stream: Annotated[str, typer.Option(help="The engine's residual stream: fp32, fp16 or bf16.")] = "fp32",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare engine and torch: logits, top-1, experts, and layer by layer where they first differ.

    Exit code 1 where top-1 agreement is too low or, for an fp32 file with an fp32 stream, a difference is not explained
    by a pre-sign value within float error of 0.

    Example: `ebnet verify net.ebn --against runs/demo --data photos/`
    """
    from ebnet.packing.source import open_packable
    from ebnet.packing.verify import verify as compare
    from ebnet.runtime.engine import load
    from ebnet.runtime.inspect import inspect

    engine = load(file, threads, stream)
    found = compare(engine, open_packable(against).model, _images(engine, data, images))
    exact = inspect(file).reals == stream == "fp32"
    passed = found.top1_agreement >= agreement and (found.unexplained == 0 or not exact)
    if as_json:
        print(json.dumps(found.to_dict() | {"passed": passed}))
    else:
        _show(found, passed)
    if not passed:
        raise typer.Exit(1)


def _images(engine: "Engine", data: Path | None, count: int) -> "np.ndarray":
    """Normalised images: of a directory, or random."""
    import numpy as np

    from ebnet.errors import DataError

    rules: Any = engine.preprocessing
    if data is None:
        shape = (count, rules.in_channels, rules.size, rules.size)
        return np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    files = sorted(path for path in data.rglob("*") if path.suffix.lower() in IMAGES)
    if not files:
        raise DataError(f"{data} holds no images ({', '.join(IMAGES)})")
    # Spread over the directory, so that all of its classes are seen.
    chosen = files[:: max(1, len(files) // count)][:count]
    pixels = np.stack([rules.read(path) for path in chosen]).astype(np.float32) / 255
    mean, std = np.float32(rules.mean), np.float32(rules.std)
    return np.ascontiguousarray(((pixels - mean) / std).transpose(0, 3, 1, 2))


def _show(found: "Verification", passed: bool) -> None:
    console = Console()
    table = Table("layer", "near 0", "signs differ", "output differs", "experts differ", title="layers that differ")
    for row in found.layers:
        if row.flipped or row.experts_differ:
            table.add_row(
                row.name, str(row.near_zero), str(row.flipped), f"{row.max_difference:.1e}", str(row.experts_differ)
            )
    if table.row_count:
        console.print(table)
    near = sum(row.near_zero for row in found.layers)
    console.print(
        f"{found.images} images: top-1 agreement {found.top1_agreement:.2%}, experts {found.experts_agreement:.2%}; "
        f"logits differ by at most {found.max_absolute:.2e} ({found.max_relative:.2e} relative)\n"
        f"within 1e-3: {found.within_tolerance}; explained by a sign within float error of 0: {found.explained}; "
        f"unexplained: {found.unexplained}; pre-sign values that near to 0: {near}\n"
        f"{'passed' if passed else 'FAILED'}",
        highlight=False,
    )
