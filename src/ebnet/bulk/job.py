"""Many images on all cores of this machine: parts of a table that survive a stop, then the whole of it.

Each part (`PART` images) is written to `OUT.parts/` as soon as it is done; the same command takes up those that are
there. When all are, they become OUT and the folder goes.
"""

import atexit
import hashlib
import json
import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait as wait_for_any
from pathlib import Path

from ebnet.bulk.rows import Row, column_types, rows_of
from ebnet.bulk.sources import Stored, stored_images
from ebnet.bulk.table import check_format, write_table
from ebnet.errors import ConfigError
from ebnet.files import write_atomically
from ebnet.runtime.engine import Engine, load

PART = 256


@dataclass(frozen=True)
class Outcome:
    """What a job did."""

    images: int
    unreadable: int
    taken_up: int
    """Images that an earlier, stopped job had done."""


def predict_all(
    network: str | os.PathLike[str],
    sources: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    top: int = 1,
    processes: int | None = None,
    on_images: Callable[[int, int], None] = lambda done, of: None,
) -> Outcome:
    """Classify every image of the sources and write one table.

    Args:
        out: a path that ends in .parquet, .csv or .jsonl.
        processes: that decode and classify, each on one core; all cores if not given.
        on_images: called with the number of images done and their total, whenever a part is.
    """
    target = Path(out)
    check_format(target)
    engine = load(network)
    images = stored_images(sources)
    parts = _Parts(target, engine, images, top)
    before = parts.done()
    done = sum(len(parts.images(number)) for number in before)
    taken_up = done
    on_images(done, len(images))
    waiting = [number for number in range(parts.count) if number not in before]
    for number in _in_processes(parts, waiting, engine.path, top, processes or os.cpu_count() or 1):
        done += len(parts.images(number))
        on_images(done, len(images))
    write_table(target, column_types(top), (parts.read(number) for number in range(parts.count)))
    unreadable = sum(row["error"] is not None for number in range(parts.count) for row in parts.read(number))
    shutil.rmtree(parts.folder)
    return Outcome(len(images), unreadable, taken_up)


class _Parts:
    """The parts of one table; `job.json` tells of which, so that none is taken for another's."""

    def __init__(self, target: Path, engine: Engine, images: list[Stored], top: int) -> None:
        self.folder = target.with_name(f"{target.name}.parts")
        self._all = images
        self.count = -(-len(images) // PART)
        listed = hashlib.sha256()
        for image in images:
            listed.update(f"{image.name}\0{image.length}\n".encode(errors="surrogateescape"))
        with open(engine.path, "rb") as file:
            network = hashlib.file_digest(file, "sha256").hexdigest()
        job = {"network": network, "images": listed.hexdigest(), "count": len(images), "top": top}
        self.folder.mkdir(exist_ok=True)
        mark = self.folder / "job.json"
        if not mark.exists():
            write_atomically(mark, json.dumps(job).encode())
        elif (found := json.loads(mark.read_bytes())) != job:
            differing = ", ".join(key for key in job if found.get(key) != job[key])
            raise ConfigError(
                f"{self.folder} holds parts of another job ({differing} differ): remove it, or choose another -o"
            )

    def images(self, number: int) -> list[Stored]:
        return self._all[number * PART : (number + 1) * PART]

    def done(self) -> set[int]:
        return {number for number in range(self.count) if self.path(number).exists()}

    def path(self, number: int) -> Path:
        return self.folder / f"{number:08}.jsonl"

    def read(self, number: int) -> list[Row]:
        return [json.loads(line) for line in self.path(number).read_text(encoding="utf-8").splitlines()]


def _in_processes(parts: _Parts, numbers: list[int], network: str, top: int, processes: int) -> Iterator[int]:
    """The numbers of the parts, as they are done. A few parts a process wait in line, so that a stop loses little."""
    context = get_context("spawn")
    with ProcessPoolExecutor(min(processes, max(1, len(numbers))), context, _begin, (network,)) as pool:
        rest, under_way = iter(numbers), dict[Future[None], int]()
        try:
            while True:
                while len(under_way) < 2 * processes and (number := next(rest, None)) is not None:
                    under_way[pool.submit(_write_part, parts.images(number), parts.path(number), top)] = number
                if not under_way:
                    return
                for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                    number = under_way.pop(future)
                    future.result()
                    yield number
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


_engine: Engine
"""Of a worker process."""


def _begin(network: str) -> None:
    global _engine  # noqa: PLW0603
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the job in the first process; a part under way is whole
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _engine = load(network)
    atexit.register(_release)


def _release() -> None:
    """Before the interpreter ends: the thread above keeps modules alive, and their engine would be called a leak."""
    global _engine  # noqa: PLW0603
    del _engine


def _end_with_parent() -> None:
    """A worker whose first process was killed would wait for work for ever."""
    parent = parent_process()
    assert parent is not None
    wait_for_any([parent.sentinel])
    os._exit(1)


def _write_part(images: list[Stored], path: Path, top: int) -> None:
    rows = rows_of(_engine, images, top)
    write_atomically(path, "".join(json.dumps(row) + "\n" for row in rows).encode())
