"""Every method of the paper's comparison that the engine runs: one image at 224x224, in turn.

    python benchmarks/methods.py                       a table
    python benchmarks/methods.py --side 64 --rounds 3  smaller and shorter
    python benchmarks/methods.py --json                the numbers

Networks of random weights: the time does not depend on them, but for the expert that an image chooses. fp16 reals, one
thread. Median and minimum over rounds in which each is called once, and how many times Real-to-Binary's they are.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

import ebnet
from cpu import cpu_name, pinned
from ebnet.models.methods import METHODS

BASE = "real-to-bin"
WARM_UP = 3


def seconds(side: int, rounds: int) -> dict[str, list[float]]:
    """Of each method, one call a round."""
    torch.manual_seed(0)
    image = np.random.default_rng(0).standard_normal((1, 3, side, side), dtype=np.float32)
    engines = {}
    with tempfile.TemporaryDirectory() as folder:
        for method in METHODS:
            if method.one_bit:
                path = ebnet.pack(ebnet.create_model(method.name, "binary"), Path(folder) / method.name, reals="fp16")
                engines[method.name] = ebnet.load(path, threads=1)
        times: dict[str, list[float]] = {name: [] for name in engines}
        for turn in range(WARM_UP + rounds):
            for name, engine in engines.items():
                start = time.perf_counter()
                engine(image)
                if turn >= WARM_UP:
                    times[name].append(time.perf_counter() - start)
    return times


def table(times: dict[str, list[float]], side: int) -> Table:
    shown = Table(title=f"{side}x{side}, one image, one thread, {cpu_name()}")
    for column in ("network", "bits", "median ms", "min ms", f"x {BASE}", "x, min"):
        shown.add_column(column, justify="left" if column == "network" else "right", no_wrap=True)
    bits = {method.name: method.bits for method in METHODS}
    for name, values in times.items():
        ratios = [f"{of(values) / of(times[BASE]):.2f}" for of in (median, min)]
        shown.add_row(name, bits[name], f"{1e3 * median(values):.2f}", f"{1e3 * min(values):.2f}", *ratios)
    return shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", type=int, default=224)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with pinned(1):
        times = seconds(options.side, options.rounds)
    if options.json:
        rows = {name: {"median": median(values), "minimum": min(values)} for name, values in times.items()}
        print(json.dumps({"cpu": cpu_name(), "side": options.side, "seconds": rows}))
    else:
        Console().print(table(times, options.side))


if __name__ == "__main__":
    main()
