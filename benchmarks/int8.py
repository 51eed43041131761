"""What int8 layers cost in accuracy: the zoo's networks as they are shipped and with int8 layers.

    python benchmarks/int8.py                               networks whose data are here
    python benchmarks/int8.py --data imagenette=/my/folder  where a data set lies
    python benchmarks/int8.py --json                        the numbers

Ranges are calibrated with training images, as validation shows them; top-1 is over all validation images, with the
share of images whose class stays the same.
"""

import json
import tempfile
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import ebnet
from ebnet.recipe.settings import Data
from ebnet.train.pictures import Pictures
from ebnet.zoo import PREFIX
from zoo_data import for_each_network, parser_for


def compared(name: str, data: Data, calibration: int) -> dict[str, object]:
    pictures = Pictures.open(data)
    shipped = ebnet.load(f"{PREFIX}{name}")
    images = pictures.sample(pictures.train, calibration)[0].numpy()
    with tempfile.TemporaryDirectory() as folder:
        settings = shipped.preprocessing
        statistics = {"mean": list(settings.mean), "std": list(settings.std)}
        path = ebnet.pack(
            ebnet.unpack(f"{PREFIX}{name}"), Path(folder) / "net.ebn", "int8", statistics, calibrate=images
        )
        int8 = ebnet.load(path)
        labels: list[np.ndarray] = []
        found: dict[str, list[np.ndarray]] = {"shipped": [], "int8": []}
        for batch, truth in track(pictures.validation().epoch(0), name, transient=True):
            labels.append(truth.numpy())
            found["shipped"].append(shipped(batch.numpy()).argmax(1))
            found["int8"].append(int8(batch.numpy()).argmax(1))
    truth = np.concatenate(labels)
    classes = {key: np.concatenate(parts) for key, parts in found.items()}
    return {
        "network": name,
        "calibration": len(images),
        "images": len(truth),
        "top1": {key: float((answer == truth).mean()) for key, answer in classes.items()},
        "agreement": float((classes["int8"] == classes["shipped"]).mean()),
    }


def show(networks: list[dict]) -> None:
    table = Table("network", "calibrated", "images", "shipped", "int8", "points", "same class", title="top-1")
    for row in networks:
        if "not_available" in row:
            table.add_row(row["network"], f"not available: {row['not_available']}")
            continue
        shipped, int8 = row["top1"]["shipped"], row["top1"]["int8"]
        numbers = (f"{shipped:.2%}", f"{int8:.2%}", f"{100 * (int8 - shipped):+.2f}", f"{row['agreement']:.2%}")
        table.add_row(row["network"], f"{row['calibration']:,}", f"{row['images']:,}", *numbers)
    Console(width=110).print(table)


def main() -> None:
    parser = parser_for(__doc__)
    parser.add_argument("--calibration", type=int, default=512, help="training images that ranges are taken from")
    arguments = parser.parse_args()
    networks = for_each_network(arguments.data, lambda name, data: compared(name, data, arguments.calibration))
    if arguments.json:
        print(json.dumps(networks))
    else:
        show(networks)


if __name__ == "__main__":
    main()
