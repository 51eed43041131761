"""How much faster than ResNet-18 is the paper's network in the engine? Batch 1, 224x224, interleaved in one process.

    python benchmarks/latency.py                 a table
    python benchmarks/latency.py --json          the numbers

1262-2-4:8:8:16 with 4 experts runs in the engine, ResNet-18 in torch eager fp32, both with the same number of threads,
one call of each in turn. Ratios are ResNet-18's time over the engine's: of medians, and of minima (which other work on
the machine disturbs least). `chrt -f 10 taskset -c 0` before the command keeps other work off the core.
"""

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

import ebnet
from resnet18 import resnet18

NETWORK, EXPERTS, SIDE = "1262-2-4:8:8:16", 4, 224


def measure(rounds: int, threads: int) -> dict[str, list[float]]:
    torch.manual_seed(0)
    torch.set_num_threads(threads)
    model = ebnet.create_model(NETWORK, experts=EXPERTS, precision="binary")
    with tempfile.TemporaryDirectory() as folder:
        engine = ebnet.load(ebnet.pack(model, Path(folder) / "net.ebn", reals="fp16"), threads=threads)
    peer = resnet18()
    images = torch.randn(1, 3, SIDE, SIDE)
    array = images.numpy()
    times: dict[str, list[float]] = {"engine": [], "torch": []}
    with torch.inference_mode():
        for round_number in range(rounds + 3):
            for name, run in (("engine", lambda: engine(array)), ("torch", lambda: peer(images))):
                start = time.perf_counter()
                run()
                if round_number >= 3:
                    times[name].append(time.perf_counter() - start)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    times = measure(arguments.rounds, arguments.threads)
    numbers = {name: {"median_ms": statistics.median(t) * 1e3, "min_ms": min(t) * 1e3} for name, t in times.items()}
    ratios = {key: numbers["torch"][key] / numbers["engine"][key] for key in ("median_ms", "min_ms")}
    if arguments.json:
        print(json.dumps({"threads": arguments.threads, "rounds": arguments.rounds, **numbers, "ratio": ratios}))
        return
    table = Table("", "median ms", "min ms", title=f"batch 1, {SIDE}x{SIDE}, {arguments.threads} thread(s)")
    labels = {"engine": f"{NETWORK}, {EXPERTS} experts, engine", "torch": "ResNet-18, torch eager fp32"}
    for name, label in labels.items():
        table.add_row(label, f"{numbers[name]['median_ms']:.2f}", f"{numbers[name]['min_ms']:.2f}")
    table.add_row("ratio", f"{ratios['median_ms']:.1f}x", f"{ratios['min_ms']:.1f}x")
    Console().print(table)


if __name__ == "__main__":
    main()
