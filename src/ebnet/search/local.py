"""Further workers on this machine: the same program again, once for each."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE_SECONDS = 60


@contextmanager
def local_workers(directory: Path, storage: str | None, data: Path | None, count: int) -> Iterator[None]:
    """`count` processes of `ebnet search worker`, which end with the study; if this one is stopped, so are they."""
    command = [sys.executable, "-m", "ebnet", "search", "worker", str(directory)]
    command += ["--data", str(data)] if data else []
    # In the environment, because everyone can read the arguments of a process and the address may hold a password.
    environment = os.environ | ({"EBNET_SEARCH_STORAGE": storage} if storage else {})
    processes = [subprocess.Popen(command, env=environment) for _ in range(count)]
    before = signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        yield
        for process in processes:
            process.wait()
    finally:
        signal.signal(signal.SIGTERM, before)
        for process in processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in processes:
            try:
                process.wait(PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
