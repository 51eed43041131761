"""What four experts cost in training: ours against a weight tensor per sample, and against one expert.

    python benchmarks/expert_conv.py             the layers, then the whole 1262-2-4:8:8:16
    python benchmarks/expert_conv.py --layers    only the layers

Memory comes from glibc as it comes: it maps and unmaps every large block, and page faults are then most of what a
weight tensor per sample costs. `--keep-freed-memory` sets it as `ebnet train` does.

Forward and backward, float32, one thread. All variants of a row run interleaved in one process of their own (what a
process freed before changes what glibc maps later); a time is given as a ratio to the plain one-expert convolution of
the same row: minimum over rounds, then median. Peak memory is what a step holds at most above its inputs, by torch's
allocation events.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from multiprocessing import get_context

import torch
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

import ebnet
from ebnet.nn import ExpertBinaryConv2d, Precision
from ebnet.train.allocator import keep_freed_memory
from naive_expert_conv import convolve

EXPERTS = 4
# channels, groups, height = width, batch, kernel
LAYERS = [
    (128, 4, 28, 64, 3),
    (256, 8, 14, 64, 3),
    (64, 1, 16, 64, 3),
    (256, 1, 14, 64, 3),
    (64, 1, 8, 128, 3),
    (512, 16, 7, 32, 3),
    (1024, 16, 7, 32, 3),
    (512, 1, 7, 32, 3),
    (128, 1, 4, 128, 3),
    (512, 1, 14, 32, 1),
    (1024, 1, 7, 32, 1),
]


def begin(keep: bool) -> None:
    """Set up the process of a row."""
    torch.set_num_threads(1)
    if keep:
        keep_freed_memory()


def time_interleaved(variants: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in variants}
    for run in variants.values():
        run()
    for _ in range(rounds):
        for name, run in variants.items():
            start = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - start)
    return times


def peak_megabytes(run: Callable[[], object]) -> float:
    """The most memory held at once above the start, from the profiler's allocation events."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        run()
    held = peak = 0
    events = [e for e in recorded.profiler.kineto_results.events() if e.name() == "[memory]"]  # type: ignore[union-attr]
    for event in sorted(events, key=lambda e: e.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    return peak / 1e6


def layer_row(channels: int, groups: int, size: int, batch: int, kernel: int, rounds: int) -> dict[str, object]:
    torch.manual_seed(0)
    shape = (channels, channels, kernel, 1, kernel // 2, 1, groups)
    one = ExpertBinaryConv2d(*shape, num_experts=1, precision=Precision.BINARY)
    many = ExpertBinaryConv2d(*shape, num_experts=EXPERTS, precision=Precision.BINARY)
    x = torch.randn(batch, channels, size, size).sign().requires_grad_()
    mean = torch.randn(batch, channels)
    dy = torch.randn(batch, channels, size, size)

    def step(run: Callable[[], Tensor], layer: ExpertBinaryConv2d) -> None:
        inputs = [x, layer.weight, *([] if layer.gate is None else layer.gate.parameters())]
        torch.autograd.grad(run(), inputs, dy)

    variants = {
        "one": lambda: step(lambda: one.convolve(x, None), one),
        "naive": lambda: step(lambda: convolve(many, x, mean), many),
        "ours": lambda: step(lambda: many.convolve(x, mean), many),
    }
    times = time_interleaved(variants, rounds)
    return {
        "shape": [channels, groups, size, batch, kernel],
        "times": times,
        "peak_mb": {name: peak_megabytes(run) for name, run in variants.items()},
    }


def network_row(batch: int, size: int, rounds: int) -> dict[str, object]:
    """The whole 1262-2-4:8:8:16, Stage II, four experts against one."""
    torch.manual_seed(0)
    networks = {
        "one": ebnet.create_model("1262-2-4:8:8:16", precision="binary"),
        "ours": ebnet.create_model("1262-2-4:8:8:16", experts=EXPERTS, precision="binary"),
    }
    images = torch.randn(batch, 3, size, size)

    def step(model: ebnet.ExpertBinaryNetwork) -> None:
        model.zero_grad(set_to_none=True)
        model(images).square().mean().backward()

    times = time_interleaved({name: lambda m=m: step(m) for name, m in networks.items()}, rounds)  # type: ignore[misc]
    return {"batch": batch, "size": size, "times": times}


def ratio(times: dict[str, list[float]], name: str) -> str:
    least = min(times[name]) / min(times["one"])
    return f"{least:.2f} {statistics.median(times[name]) / statistics.median(times['one']):.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--layers", action="store_true", help="leave out the whole network")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--batch", type=int, default=32, help="of the whole network")
    parser.add_argument("--keep-freed-memory", action="store_true", help="glibc as training sets it, not as it comes")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with get_context("spawn").Pool(1, begin, (args.keep_freed_memory,), maxtasksperchild=1) as processes:
        rows = [processes.apply(layer_row, (*shape, args.rounds)) for shape in LAYERS]
        results: dict[str, object] = {"layers": rows}
        if not args.layers:
            results["network"] = processes.apply(network_row, (args.batch, 224, max(2, args.rounds // 2)))
    if args.json:
        print(json.dumps(results))
        return
    table = Table(box=SIMPLE, title=f"{EXPERTS} experts, forward + backward; time relative to one expert: min, median")
    for column in ("C g size B k", "naive", "ours", "gain", "MB 1", "naive", "ours"):
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        times, peak = row["times"], row["peak_mb"]
        gain = min(times["naive"]) / min(times["ours"])  # type: ignore[index]
        table.add_row(
            " ".join(map(str, row["shape"])),  # type: ignore[arg-type]
            ratio(times, "naive"),  # type: ignore[arg-type]
            ratio(times, "ours"),  # type: ignore[arg-type]
            f"{gain:.2f}",
            *(f"{peak[name]:.0f}" for name in ("one", "naive", "ours")),  # type: ignore[index]
        )
    console = Console()
    console.print(table)
    if "network" in results:
        times = results["network"]["times"]  # type: ignore[index]
        console.print(f"1262-2-4:8:8:16, batch {args.batch} at 224: 4 experts / 1 expert = {ratio(times, 'ours')}")


if __name__ == "__main__":
    main()
