"""`ebnet pack`: a trained network as one file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

if TYPE_CHECKING:
    import numpy as np

    from ebnet.packing.source import Packable

CALIBRATION_IMAGES = 256


def pack(
    source: Annotated[Path, typer.Argument(help="A run directory, a saved network's, or a packed file.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write, e.g. net.ebn.")],
    reals: Annotated[
        str, typer.Option(help="Width of everything that is not one bit: fp32, fp16, or int8 layers (else fp16).")
    ] = "fp32",
    calibrate: Annotated[
        Path | None,
        typer.Option(help="For int8: a directory of images like those it will see. [default: the run's own]"),
    ] = None,
) -> None:
    """Turn a Stage II network into one file that the engine runs without torch.

    With int8 the weights of stem, shortcuts, head and classifier are whole numbers, and what these layers read is
    rounded to bytes; the ranges are taken from some hundred images. Layers of which that would save neither 2 KB nor a
    microsecond stay real.

    Examples:

        ebnet pack runs/demo -o net.ebn --reals fp16

        ebnet pack runs/demo -o net.ebn --reals int8 --calibrate photos/
    """
    from ebnet.cost.profile import profile
    from ebnet.packing.file import pack as write
    from ebnet.packing.source import open_packable

    if calibrate is not None and reals != "int8":
        raise typer.BadParameter(f"--calibrate is for --reals int8, not {reals}")
    packable = open_packable(source)
    images = _calibration(source, calibrate, packable) if reals == "int8" else None
    write(packable.model, output, reals, packable.preprocessing, packable.labels, images)  # type: ignore[arg-type]
    cost = profile(packable.model.config)
    counted = {"fp32": cost.bytes_fp32, "fp16": cost.bytes_fp16, "int8": cost.bytes_int8}[reals]
    widths = "int8 and fp16" if reals == "int8" else reals
    size = output.stat().st_size
    Console().print(
        f"{output}: {size / 1e6:.2f} MB ({counted / 1e6:.2f} MB of bits and {widths} reals, the rest is the header); "
        f"next: ebnet verify {output} --against {source}",
        soft_wrap=True,
        highlight=False,
        markup=False,
    )


def _calibration(source: Path, folder: Path | None, packable: "Packable") -> "np.ndarray":
    from ebnet.cli.sample_images import folder_images, validation_images
    from ebnet.errors import DataError
    from ebnet.packing.preprocessing import complete_preprocessing
    from ebnet.runtime.preprocessing import Preprocessing

    if folder is not None:
        rules = Preprocessing(**complete_preprocessing(packable.preprocessing, packable.model.config))
        return folder_images(rules, folder, CALIBRATION_IMAGES)
    found = validation_images(source, CALIBRATION_IMAGES)
    if found is None:
        raise DataError(
            f"--reals int8 needs images to calibrate with, and {source} has none of its own here: "
            "give a directory of images like those the network will see, --calibrate DIR"
        )
    return found
