"""The engine beside what you use today: one picture at 224x224, everybody in turn.

    python benchmarks/latency.py                                   a table
    python benchmarks/latency.py --peers torch,openvino-int8       some of the peers
    python benchmarks/latency.py --int8                            the engine with int8 layers, beside its fp16 self too
    python benchmarks/latency.py --json --plot latency.svg         the numbers (`ebnet report` reads them), and a figure

1262-2-4:8:8:16 with 4 experts runs in the engine, ResNet-18 (or a binary network of its size, Bi-Real-18) in the peers.
Each has a process of its own, all on the same cores, and is called once in each round, so that other work hits all
alike. Median and minimum (which other work disturbs least), and how many times the engine's they are. A peer's logits
are compared with torch's before anything is timed; one that cannot be had is shown with the reason. `--real-time` keeps
other work off the cores during the rounds, where the system allows it.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from cpu import cpu_name, undisturbed
from peers import ENGINE, INT8_ENGINE, PEERS, SIDE, chosen
from peers.turns import Outcome, take_turns

WARM_UP = 8
"""As many as there are pictures: an expert is laid out when a picture first chooses it."""


def numbers(outcomes: list[Outcome]) -> dict[str, Any]:
    """Seconds of those that ran, reasons of those that did not."""
    ran = [
        {"name": one.peer.label, "version": one.version, "median": one.median, "minimum": one.minimum}
        for one in outcomes
        if one.reason is None
    ]
    missing = [{"name": one.peer.label, "reason": one.reason} for one in outcomes if one.reason is not None]
    return {"cpu": cpu_name(), "peers": ran, "missing": missing}


def table(found: dict[str, Any], title: str) -> Table:
    shown = Table(title=title)
    for column in ("", "median ms", "min ms", "x engine", "x, min"):
        shown.add_column(column, justify="right" if column else "left", no_wrap=True)
    shown.add_column("version")
    engine = found["peers"][0]
    for one in found["peers"]:
        times = [f"{1e3 * one[key]:.2f}" for key in ("median", "minimum")]
        ratios = [f"{one[key] / engine[key]:.2f}" for key in ("median", "minimum")]
        shown.add_row(one["name"], *times, *ratios, one["version"])
    for one in found["missing"]:
        shown.add_row(one["name"], "", "", "", "", f"not available: {one['reason']}")
    return shown


def plot(found: dict[str, Any], path: Path) -> None:
    from ebnet.report.plots import save_figure
    from ebnet.report.speed import latency_bars

    save_figure(latency_bars(found["peers"]), path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = ", ".join(peer.name for peer in PEERS)
    parser.add_argument("--peers", type=chosen, default=PEERS, help=f"with commas between, or `none`: {names}")
    parser.add_argument("--int8", action="store_true", help="the engine's stem, shortcuts and classifier in int8")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--real-time", action="store_true", help="keep other work off the cores during the rounds")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="SVG, PNG or PDF, by the name's end")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if arguments.real_time:
        try:
            with undisturbed([]):
                pass
        except PermissionError:
            parser.error("--real-time needs the right to a real-time priority")
    engines = [INT8_ENGINE, ENGINE] if arguments.int8 else [ENGINE]
    entries = [(peer, 1) for peer in (*engines, *arguments.peers)]
    outcomes = take_turns(entries, 1, arguments.rounds, WARM_UP, arguments.threads, arguments.real_time)
    settings = {"threads": arguments.threads, "rounds": arguments.rounds}
    found = settings | numbers(outcomes)
    if arguments.plot:
        plot(found, arguments.plot)
    if arguments.json:
        print(json.dumps(found))
        return
    title = f"batch 1, {SIDE}x{SIDE}, {arguments.threads} thread(s), {found['cpu']}"
    Console(width=120).print(table(found, title))


if __name__ == "__main__":
    main()
