"""How many images a second: the paper's network in the engine against ResNet-18, one image or many at a time.

    python benchmarks/throughput.py                 a table
    python benchmarks/throughput.py --json          the numbers

1262-2-4:8:8:16 with 4 experts runs in the engine, ResNet-18 in torch eager fp32, at 224x224, with as many threads as
cores it is pinned to (`--threads`, once for each count). Each takes the same 32 random images in its turn, one by one
or all at once. Images a second of the median turn and of the fastest, which other work disturbs least.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

import ebnet
from resnet18 import resnet18

NETWORK, EXPERTS, SIDE = "1262-2-4:8:8:16", 4, 224
BATCHES = (1, 32)
IMAGES = 32
"""Of one turn, whatever the batch."""


def measure(path: Path, rounds: int, threads: int) -> list[dict[str, float | str]]:
    """Every runner and batch on the first `threads` of the cores this process may use."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(cores)[:threads])
    torch.set_num_threads(threads)
    engine, peer = ebnet.load(path, threads=threads), resnet18()
    runners: dict[str, Callable[[torch.Tensor], object]] = {"engine": lambda x: engine(x.numpy()), "torch": peer}
    images = torch.randn(IMAGES, 3, SIDE, SIDE)
    times: dict[tuple[str, int], list[float]] = {(name, batch): [] for batch in BATCHES for name in runners}
    with torch.inference_mode():
        for round_number in range(rounds + 1):
            for (name, batch), seconds in times.items():
                start = time.perf_counter()
                for some in images.split(batch):
                    runners[name](some)
                if round_number > 0:
                    seconds.append(time.perf_counter() - start)
    os.sched_setaffinity(0, cores)
    return [
        {
            "runner": name,
            "threads": threads,
            "batch": batch,
            "median_images_per_second": IMAGES / statistics.median(seconds),
            "best_images_per_second": IMAGES / min(seconds),
        }
        for (name, batch), seconds in times.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, action="append", help="may be repeated; 1 and 2 where not given")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    model = ebnet.create_model(NETWORK, experts=EXPERTS, precision="binary")
    with tempfile.TemporaryDirectory() as folder:
        path = ebnet.pack(model, Path(folder) / "net.ebn", reals="fp16")
        rows = [row for threads in arguments.threads or (1, 2) for row in measure(path, arguments.rounds, threads)]
    if arguments.json:
        print(json.dumps(rows))
        return
    table = Table("", "threads", "batch", "images/s, median turn", "images/s, fastest turn", title=f"{SIDE}x{SIDE}")
    labels = {"engine": f"{NETWORK}, {EXPERTS} experts, engine", "torch": "ResNet-18, torch eager fp32"}
    for row in rows:
        speeds = (f"{row[key]:.1f}" for key in ("median_images_per_second", "best_images_per_second"))
        table.add_row(labels[str(row["runner"])], str(row["threads"]), str(row["batch"]), *speeds)
    Console().print(table)


if __name__ == "__main__":
    main()
