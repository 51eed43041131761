"""What a training step costs: native kernels against the same step through torch, in turn.

    python benchmarks/training.py [SET-UP ...] [--rounds 15] [--experts 4] [--parts] [--against CHECKOUT]

Each contestant is a process of its own on the same core. They take turns, two steps each of which the second counts, so
that other work on the machine hits all alike; the tables give the median and the least time. The share is of what the
core reaches in a float32 matrix product of 1024 x 1024. Memory is what a step takes at its peak beyond weights and
optimizer. `--against` adds the step of another checkout of the project (with its own `.venv` and
`benchmarks/training_step.py`), `--parts` says which operations the time goes to.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from cpu import cpu_name, pinned

HERE = Path(__file__).parent.parent
SET_UPS: dict[str, tuple[str, dict[str, Any]]] = {
    "evidence": ("evidence", {}),
    "evidence-short": ("evidence-short", {}),
    "demo": ("demo", {}),
    "imagenette": ("imagenette", {}),
    "cifar": (
        "evidence-short",
        {
            "network.arch": "1111-0.5-1:1:1:1",
            "network.stem": "cifar",
            "network.stem_width": 64,
            "network.shortcut_reduction": 4,
        },
    ),
    # No workers: they would decode on the core that is timed, and after their fork a step copies its weights' pages.
    "paper": ("imagenet", {"schedule.batch_size": 8, "compute.channels_last": False, "data.workers": 0}),
}
STAGES = {"I": "stage1-experts", "II": "stage2"}


@dataclass
class Contestant:
    """One stage, number of experts and path, training in a process of its own."""

    path: str
    stage: str
    experts: int
    process: subprocess.Popen[str]
    seconds: list[float] = field(default_factory=list)
    memory: int = 0
    images: int = 0
    flops: int = 0

    def ask(self, question: str) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(question + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"{self.path}, Stage {self.stage}, {self.experts} experts: its process ended")
        return json.loads(answer)


def start(setup: str, path: str, stage: str, experts: int, checkout: Path, threads: int) -> Contestant:
    recipe, changes = SET_UPS[setup]
    task = {
        "recipe": recipe,
        "changes": changes | {"network.experts": experts},
        "stage": STAGES[stage],
        "threads": threads,
    }
    python = sys.executable if checkout == HERE else str(checkout / ".venv" / "bin" / "python")
    program = [python, str(checkout / "benchmarks" / "training_step.py"), json.dumps(task)]
    environment = os.environ | {
        "KINETO_LOG_LEVEL": "99",
        "EBNET_TRAIN": "torch" if path == "torch" else "native",
        "OMP_NUM_THREADS": str(threads),
    }
    process = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    contestant = Contestant(path, stage, experts, process)
    contestant.images, contestant.flops = contestant.ask("work").values()
    contestant.memory = contestant.ask("memory")
    return contestant


def take_turns(arguments: argparse.Namespace, setup: str, stack: ExitStack) -> list[Contestant]:
    places = dict.fromkeys(arguments.paths, HERE)
    if arguments.against:
        places["against"] = arguments.against.resolve()
    contestants = []
    for stage in arguments.stages:
        for experts in dict.fromkeys((1, arguments.experts)):
            for path, checkout in places.items():
                contestant = start(setup, path, stage, experts, checkout, arguments.threads)
                stack.callback(contestant.process.kill)
                contestants.append(contestant)
    for turn in range(arguments.rounds + 1):
        for contestant in contestants:
            spent = contestant.ask("seconds")
            if turn:  # the first is to warm up
                contestant.seconds.append(spent)
    return contestants


def peak(threads: int) -> float:
    """Floating-point operations a second of a matrix product."""
    torch.set_num_threads(threads)
    side = 1024
    a, b = torch.rand(side, side), torch.rand(side, side)

    def once() -> float:
        begin = time.perf_counter()
        torch.mm(a, b)
        return time.perf_counter() - begin

    return 2 * side**3 / min(once() for _ in range(30))


def table_of(contestants: list[Contestant], setup: str, most: float) -> Table:
    columns = ("Stage", "experts", "path", "ms median", "least", "images/s", "GFLOP/s", "% of peak", "MB")
    title = f"{setup}, batch {contestants[0].images}"
    table = Table(*columns, *(f"x {name}" for name in ("native", "one expert")), title=title)
    for one in contestants:
        median, least = statistics.median(one.seconds), min(one.seconds)

        def against(others: Iterator[Contestant], one: Contestant = one) -> str:
            """How many times the other's seconds, by median and by least."""
            for other in others:
                ratios = (pick(one.seconds) / pick(other.seconds) for pick in (statistics.median, min))
                return " ".join(f"{ratio:.2f}" for ratio in ratios)
            return ""

        same = [other for other in contestants if other.stage == one.stage]
        table.add_row(
            one.stage,
            str(one.experts),
            one.path,
            f"{1e3 * median:.1f}",
            f"{1e3 * least:.1f}",
            f"{one.images / median:.0f}",
            f"{1e-9 * one.flops / median:.1f}",
            f"{100 * one.flops / median / most:.0f}",
            f"{one.memory / 2**20:.0f}",
            against(other for other in same if other.experts == one.experts and other.path == "native"),
            against(other for other in same if other.experts == 1 and other.path == one.path),
        )
    return table


def parts_of(contestant: Contestant) -> Table:
    title = f"Stage {contestant.stage}, {contestant.experts} experts, {contestant.path}: where the time goes"
    table = Table("operation", "% of a step", title=title)
    for name, share in sorted(contestant.ask("parts").items(), key=lambda item: -item[1])[:16]:
        table.add_row(name, f"{100 * share:.1f}")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("setups", nargs="*", metavar="SET-UP", help=f"of {', '.join(SET_UPS)} (default: all)")
    parser.add_argument("--paths", nargs="+", choices=("native", "torch"), default=["native", "torch"])
    parser.add_argument("--stages", nargs="+", choices=tuple(STAGES), default=list(STAGES))
    parser.add_argument("--experts", type=int, default=4, help="compared with one")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--against", type=Path, metavar="CHECKOUT")
    parser.add_argument("--parts", action="store_true")
    arguments = parser.parse_args()
    if unknown := [setup for setup in arguments.setups if setup not in SET_UPS]:
        parser.error(f"no set-up is called {unknown[0]!r}: expected some of {', '.join(SET_UPS)}")
    console = Console(width=120)
    with pinned(arguments.threads):
        most = peak(arguments.threads)
        console.print(f"{cpu_name()}, {arguments.threads} thread(s), matrix product {1e-9 * most:.0f} GFLOP/s")
        for setup in arguments.setups or SET_UPS:
            with ExitStack() as stack:
                contestants = take_turns(arguments, setup, stack)
                console.print(table_of(contestants, setup, most))
                for contestant in contestants if arguments.parts else []:
                    console.print(parts_of(contestant))


if __name__ == "__main__":
    main()
