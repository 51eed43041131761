"""Further processes on this machine that end with this one."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

PATIENCE_SECONDS = 60
"""For a process to save its work once it has been told to stop."""


@contextmanager
def running(
    command: Sequence[str], count: int, environment: Mapping[str, str] | None = None
) -> Iterator[list[subprocess.Popen[bytes]]]:
    """`python -m COMMAND` as `count` processes, waited for at the end; if this one is stopped, so are they.

    Args:
        environment: variables on top of this process's. What must stay secret goes here, because everyone can read the
            arguments of a process.
    """
    line = [sys.executable, "-m", *command]
    processes = [subprocess.Popen(line, env=os.environ | (environment or {})) for _ in range(count)]
    before = signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        yield processes
        for process in processes:
            process.wait()
    except KeyboardInterrupt:
        _wait(processes, PATIENCE_SECONDS / 6)  # Ctrl-C reaches them too, and a second signal would not let them save
        raise
    finally:
        signal.signal(signal.SIGTERM, before)
        for process in processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        _wait(processes, PATIENCE_SECONDS)
        for process in processes:
            if process.poll() is None:
                process.kill()


def _wait(processes: Sequence[subprocess.Popen[bytes]], seconds: float) -> None:
    until = time.monotonic() + seconds
    for process in processes:
        try:
            process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            return
