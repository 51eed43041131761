"""What a narrow residual stream costs and saves: classes that change, and time.

    python benchmarks/stream.py                               trained networks whose data are here, and the time
    python benchmarks/stream.py --data imagenette=/my/folder  where a data set lies
    python benchmarks/stream.py --json                        the numbers

The networks of the zoo run over the validation pictures of their data with the stream in fp32, fp16 and bf16: top-1,
and the share of pictures whose class is that of fp32. 1262-2-4:8:8:16 with 4 experts at 224x224, batch 1, one thread,
is timed with each, in turn.
"""

import json
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import ebnet
from ebnet.recipe.settings import Data
from ebnet.train.pictures import Pictures
from ebnet.zoo import PREFIX
from peers import EXPERTS, NETWORK, SIDE
from zoo_data import for_each_network, parser_for

STREAMS = ("fp32", "fp16", "bf16")


def agreement(name: str, data: Data) -> dict[str, object]:
    """Top-1 of each stream and its agreement with fp32, over the validation pictures."""
    engines = {stream: ebnet.load(f"{PREFIX}{name}", stream=stream) for stream in STREAMS}
    labels: list[np.ndarray] = []
    classes: dict[str, list[np.ndarray]] = {stream: [] for stream in STREAMS}
    for images, truth in track(Pictures.open(data).validation().epoch(0), name, transient=True):
        labels.append(truth.numpy())
        for stream, engine in engines.items():
            classes[stream].append(engine(images.numpy()).argmax(1))
    found = {stream: np.concatenate(parts) for stream, parts in classes.items()}
    truth = np.concatenate(labels)
    return {
        "network": name,
        "images": len(truth),
        "top1": {stream: float((found[stream] == truth).mean()) for stream in STREAMS},
        "agreement": {stream: float((found[stream] == found["fp32"]).mean()) for stream in STREAMS},
    }


def times(rounds: int) -> dict[str, dict[str, float]]:
    """Milliseconds of a prediction with each stream, median and least."""
    image = np.random.default_rng(0).standard_normal((1, 3, SIDE, SIDE), dtype=np.float32)
    with tempfile.TemporaryDirectory() as folder:
        model = ebnet.create_model(NETWORK, experts=EXPERTS, precision="binary")
        path = ebnet.pack(model, Path(folder) / "net.ebn", reals="fp16")
        engines = {stream: ebnet.load(path, stream=stream) for stream in STREAMS}
        taken: dict[str, list[float]] = {stream: [] for stream in STREAMS}
        for _ in range(rounds + 1):
            for stream, engine in engines.items():
                start = time.perf_counter()
                engine(image)
                taken[stream].append((time.perf_counter() - start) * 1e3)
    return {stream: {"median": statistics.median(t[1:]), "min": min(t[1:])} for stream, t in taken.items()}


def show(networks: list[dict], milliseconds: dict[str, dict[str, float]]) -> None:
    console = Console(width=110)
    table = Table("network", "pictures", *STREAMS, title="top-1 (and the same class as with fp32)")
    for row in networks:
        if "not_available" in row:
            table.add_row(row["network"], f"not available: {row['not_available']}")
            continue
        cells = [f"{row['top1'][stream]:.2%} ({row['agreement'][stream]:.2%})" for stream in STREAMS]
        table.add_row(row["network"], f"{row['images']:,}", *cells)
    console.print(table)
    table = Table("stream", "median ms", "min ms", title=f"{NETWORK}, {EXPERTS} experts, {SIDE}x{SIDE}, one thread")
    for stream, row in milliseconds.items():
        table.add_row(stream, f"{row['median']:.2f}", f"{row['min']:.2f}")
    console.print(table)


def main() -> None:
    parser = parser_for(__doc__)
    parser.add_argument("--rounds", type=int, default=100, help="of the timing")
    arguments = parser.parse_args()
    networks = for_each_network(arguments.data, agreement)
    milliseconds = times(arguments.rounds)
    if arguments.json:
        print(json.dumps({"networks": networks, "milliseconds": milliseconds}))
    else:
        show(networks, milliseconds)


if __name__ == "__main__":
    main()
