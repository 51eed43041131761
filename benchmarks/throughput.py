"""How many images a second: the paper's network in the engine against ResNet-18, one image or many at a time.

    python benchmarks/throughput.py                             a table
    python benchmarks/throughput.py --peers torch,openvino-int8 other peers of benchmarks/latency.py
    python benchmarks/throughput.py --json                      the numbers

1262-2-4:8:8:16 with 4 experts runs in the engine, ResNet-18 in torch eager fp32 or the peers named, at 224x224,
with as many threads as cores they are pinned to (`--threads`, once for each count). Each takes 32 images in its turn,
one by one or all at once. Images a second of the median turn and of the fastest, which other work disturbs least.
"""

import argparse
import json

from rich.console import Console
from rich.table import Table

from peers import ENGINE, SIDE, chosen
from peers.turns import Outcome, take_turns

BATCHES = (1, 32)
IMAGES = 32
"""Of one turn, whatever the batch."""


def row(outcome: Outcome, threads: int) -> dict[str, float | str]:
    found: dict[str, float | str] = {"runner": outcome.peer.label, "threads": threads, "batch": outcome.batch}
    if outcome.reason is not None:
        return found | {"not_available": outcome.reason}
    speeds = {"median_images_per_second": IMAGES / outcome.median, "best_images_per_second": IMAGES / outcome.minimum}
    return found | speeds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=chosen, default="torch", help="with commas between, `all` or `none`")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, action="append", help="may be repeated; 1 and 2 where not given")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    entries = [(peer, batch) for batch in BATCHES for peer in (ENGINE, *arguments.peers)]
    rows = []
    for threads in arguments.threads or (1, 2):
        outcomes = take_turns(entries, IMAGES, arguments.rounds, 1, threads)
        rows += [row(outcome, threads) for outcome in outcomes]
    if arguments.json:
        print(json.dumps(rows))
        return
    table = Table("", "threads", "batch", "images/s, median turn", "images/s, fastest turn", title=f"{SIDE}x{SIDE}")
    for one in rows:
        if "not_available" in one:
            speeds = [f"not available: {one['not_available']}", ""]
        else:
            speeds = [f"{one[key]:.1f}" for key in ("median_images_per_second", "best_images_per_second")]
        table.add_row(str(one["runner"]), str(one["threads"]), str(one["batch"]), *speeds)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
