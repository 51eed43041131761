"""The lock that keeps two processes out of one place: a file, held as long as the process lives."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ebnet.files import explained


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Hold the lock at `path` for the time of the block; False, and nothing held, where another process has it.

    The system lets go of it when the process ends, however it ends; the file itself may stay.
    """
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("w")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
