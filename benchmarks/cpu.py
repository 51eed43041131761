"""The processor: its name, and the right to its cores."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ebnet.machine import cpu_name

__all__ = ["cpu_name", "pinned", "undisturbed"]


@contextmanager
def pinned(threads: int) -> Iterator[None]:
    """This process, and those it starts, on the first `threads` of the cores it may use."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(cores)[:threads])
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


@contextmanager
def undisturbed(processes: list[int]) -> Iterator[None]:
    """Real-time priority for all threads of this process and of others: nothing else runs on their cores meanwhile."""
    tasks = [task for process in (os.getpid(), *processes) for task in Path(f"/proc/{process}/task").iterdir()]
    threads = [int(task.name) for task in tasks]
    before = {thread: (os.sched_getscheduler(thread), os.sched_getparam(thread)) for thread in threads}
    for thread in threads:
        os.sched_setscheduler(thread, os.SCHED_FIFO, os.sched_param(10))
    try:
        yield
    finally:
        for thread, (policy, parameter) in before.items():
            if Path(f"/proc/{thread}").exists():
                os.sched_setscheduler(thread, policy, parameter)
