"""Callers that share one engine: images a second of 1, 2 and 8 threads, and the memory of each further session.

    python benchmarks/callers.py                 a table
    python benchmarks/callers.py --json          the numbers

1262-2-4:8:8:16 with 4 experts at 224x224, fp16 reals, one thread a call, one image a call. The counts of callers take
turns; in a turn every caller runs its share of the same images. Times are of a whole turn: the fastest is what other
work disturbs least. Memory is the growth of the resident size from one caller's turn to the last, for each session that
came with it, beside the bytes of a session's own buffers.
"""

import argparse
import json
import statistics
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import ebnet
from cpu import cpu_name
from ebnet.models.registry import create_model

NETWORK, EXPERTS, SIDE = "1262-2-4:8:8:16", 4, 224
CALLERS = (1, 2, 8)
IMAGES = 32


def resident() -> int:
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS:"))


def turn(engine: ebnet.Engine, images: np.ndarray, callers: int) -> float:
    """Seconds until all callers are through."""

    def call(own: np.ndarray) -> None:
        for image in own:
            engine(image[None])

    threads = [threading.Thread(target=call, args=(images[i::callers],)) for i in range(callers)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    images = np.random.default_rng(0).integers(0, 256, (IMAGES, SIDE, SIDE, 3), dtype=np.uint8)
    with tempfile.TemporaryDirectory() as directory:
        network = create_model(NETWORK, experts=EXPERTS, precision="binary")
        engine = ebnet.load(ebnet.pack(network, Path(directory) / "net.ebn", reals="fp16"))
        seconds: dict[int, list[float]] = {callers: [] for callers in CALLERS}
        turn(engine, images, 1)
        before = resident()
        for _ in range(arguments.rounds):
            for callers in CALLERS:
                seconds[callers].append(turn(engine, images, callers))
        sessions = engine.session_bytes
        grown = (resident() - before) / max(len(sessions) - 1, 1)
    rows = [
        {
            "callers": callers,
            "median_images_per_second": IMAGES / statistics.median(times),
            "best_images_per_second": IMAGES / min(times),
            "times_one_caller": min(seconds[1]) / min(times),
        }
        for callers, times in seconds.items()
    ]
    memory = {"sessions": len(sessions), "buffers_of_each": max(sessions), "resident_of_each_further": grown}
    if arguments.json:
        print(json.dumps({"cpu": cpu_name(), "rows": rows, "memory": memory}))
        return
    table = Table("callers", "images/s, median", "images/s, fastest", "x one caller, fastest", title=cpu_name())
    for row in rows:
        speeds = (row["median_images_per_second"], row["best_images_per_second"])
        table.add_row(str(row["callers"]), *(f"{speed:.1f}" for speed in speeds), f"{row['times_one_caller']:.2f}")
    console = Console(width=120)
    console.print(table)
    console.print(
        f"{len(sessions)} sessions of {max(sessions) / 1e6:.2f} MB of buffers each; the process grew by "
        f"{grown / 1e6:.2f} MB for each further one"
    )


if __name__ == "__main__":
    main()
