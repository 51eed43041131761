"""What int8 layers cost in accuracy: the zoo's networks as they are shipped and with int8 layers.

    python benchmarks/int8.py                               networks whose data are here
    python benchmarks/int8.py --data imagenette=/my/folder  where a data set lies
    python benchmarks/int8.py --layers all                  small layers in int8 too, which `ebnet pack` leaves real
    python benchmarks/int8.py --layers stem.mix             one layer alone
    python benchmarks/int8.py --json                        the numbers

Each network is packed several times, its ranges calibrated with other training images each time, as validation shows
them. Over all validation images: the share whose class changes, and the difference of top-1 in points. Its standard
error is that of paired images; of several files it is the mean's, an image's differences being averaged first.
"""

import json
import tempfile
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from unittest.mock import patch

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import ebnet
from ebnet.packing.int8 import Op
from ebnet.recipe.settings import Data
from ebnet.runtime.engine import Engine
from ebnet.train.pictures import Pictures
from ebnet.zoo import PREFIX
from zoo_data import for_each_network, parser_for


def packed(name: str, images: np.ndarray, folder: Path) -> Engine:
    settings = asdict(ebnet.load(f"{PREFIX}{name}").preprocessing)
    path = ebnet.pack(ebnet.unpack(f"{PREFIX}{name}"), folder / "net.ebn", "int8", settings, calibrate=images)
    return ebnet.load(path)


def compared(name: str, data: Data, calibration: int, files: int) -> dict[str, object]:
    pictures = Pictures.open(data)
    shipped = ebnet.load(f"{PREFIX}{name}")
    images = pictures.sample(pictures.train, calibration * files)[0].numpy()
    with tempfile.TemporaryDirectory() as folder:
        engines = [packed(name, images[first::files], Path(folder)) for first in range(files)]
        right: list[np.ndarray] = []
        gained: list[np.ndarray] = []
        changed: list[np.ndarray] = []
        for batch, labels in track(pictures.validation().epoch(0), name, transient=True):
            truth, own = labels.numpy(), shipped(batch.numpy()).argmax(1)
            found = np.stack([engine(batch.numpy()).argmax(1) for engine in engines])
            right.append(own == truth)
            changed.append(found != own)
            gained.append((found == truth).astype(float) - (own == truth))
    differences = 100 * np.concatenate(gained, 1)
    count = differences.shape[1]
    return {
        "network": name,
        "int8_layers": [op["name"] for op in engines[0].program if "int8" in op],
        "calibration": calibration,
        "images": count,
        "top1": float(np.concatenate(right).mean()),
        "changed": float(np.concatenate(changed, 1).mean()),
        "points": [float(row.mean()) for row in differences],
        "mean": float(differences.mean()),
        "error": float(differences.mean(0).std() / np.sqrt(count)),
        "error_of_one": float(differences.std(1).mean() / np.sqrt(count)),
    }


def show(networks: list[dict]) -> None:
    columns = ("network", "layers", "images", "shipped", "changed", "points, file by file", "mean")
    table = Table(*columns, title="top-1 with int8")
    for row in networks:
        if "not_available" in row:
            table.add_row(row["network"], f"not available: {row['not_available']}")
            continue
        each = " ".join(f"{points:+.2f}" for points in row["points"])
        numbers = (f"{len(row['int8_layers'])}", f"{row['images']:,}", f"{row['top1']:.2%}", f"{row['changed']:.2%}")
        errors = (f"{each} ±{row['error_of_one']:.2f}", f"{row['mean']:+.2f} ±{row['error']:.2f}")
        table.add_row(row["network"], *numbers, *errors)
    Console(width=120).print(table)


def main() -> None:
    parser = parser_for(__doc__)
    parser.add_argument("--calibration", type=int, default=512, help="training images that a file's ranges are from")
    parser.add_argument("--files", type=int, default=4, help="that are packed of each network")
    parser.add_argument("--layers", help="to be int8, with commas between, or `all`, not those that are worth it")
    arguments = parser.parse_args()
    asked = None if arguments.layers is None else arguments.layers.split(",")

    def layers(ops: list[Op], *_: object) -> list[int]:
        assert asked is not None
        return [
            index
            for index, op in enumerate(ops)
            if op["op"] in ("conv", "linear") and (asked == ["all"] or op["name"] in asked)
        ]

    with patch("ebnet.packing.file.int8_layers", layers) if asked else nullcontext():
        networks = for_each_network(
            arguments.data, lambda name, data: compared(name, data, arguments.calibration, arguments.files)
        )
    if arguments.json:
        print(json.dumps(networks))
    else:
        show(networks)


if __name__ == "__main__":
    main()
