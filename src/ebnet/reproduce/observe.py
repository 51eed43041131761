"""Watching workers: what is done, what is left, and each phase as it ends."""

import time
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ebnet.errors import StudyError
from ebnet.processes import running
from ebnet.reproduce.chain import links_before
from ebnet.reproduce.order import Work
from ebnet.reproduce.records import Records, left

SECONDS_BETWEEN_LOOKS = 1.0
USUAL = {"weights": "learned-scale", "activations": "sign", "unit": "real-to-binary"}
"""What goes without saying of a network."""
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
"""Small networks gain nothing from more, and a run's result shall not depend on how many there are."""


def carry_out(order: Work, jobs: int, console: Console) -> None:
    """Train what an order still lacks, in `jobs` processes of one thread each."""
    records = Records(order.results)
    links = left(order.links(), records)
    if not links:
        return
    keys = {link.key for link in links}
    again = [link for link in links_before(links) if records.has(link.key) and not link.trained(order.work)]
    if again:
        console.print(
            f"{len(again)} phases have a record, but their networks are not in {order.work}: they are trained again, "
            "for those that follow them; their records stay.",
            highlight=False,
            markup=False,
        )
    columns = (TextColumn("phases"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    command = [order.worker, order.to_json()]
    with Progress(*columns, console=console) as progress, running(command, min(jobs, len(keys)), ONE_THREAD) as workers:
        task = progress.add_task("", total=len(keys))

        def look() -> None:
            for key in sorted(filter(records.has, keys)):
                keys.remove(key)
                progress.advance(task)
                progress.console.print(escape(describe(records.read(key))), highlight=False)

        _until(lambda: all(worker.poll() is not None for worker in workers), look)
    broken = [worker.returncode for worker in workers if worker.returncode]
    if broken:
        raise StudyError(
            f"{len(broken)} of {len(workers)} workers ended with {', '.join(map(str, broken))}, {len(keys)} phases are "
            "left; what they said stands above, and the same command goes on"
        )


def _until(done: Callable[[], bool], look: Callable[[], None]) -> None:
    while not done():
        look()
        time.sleep(SECONDS_BETWEEN_LOOKS)
    look()


def describe(record: dict[str, Any]) -> str:
    network = record["recipe"]["network"]
    what = f"{record['stage']} of {network['arch']}, {network['conv']} x {network['experts']}, seed {record['seed']}"
    ways = {name: network.get(name, usual) for name, usual in USUAL.items()}
    what += "".join(f", {way}" for name, way in ways.items() if way != USUAL[name])
    if "failed" in record:
        return f"{what}: {record['failed']}"
    return f"{what}: top-1 {record['top1']:.2%}, {record['seconds']:.0f} s ({record['key']})"
