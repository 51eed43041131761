"""`metrics.jsonl`: what a run measures while it trains, one JSON object a line."""

import json
import os
from pathlib import Path
from typing import Any

from ebnet.errors import CheckpointError
from ebnet.files import explained
from ebnet.names import by_todays_name


class MetricsLog:
    """`metrics.jsonl`: one JSON object a line, appended. A resumed run first cuts off what it is going to repeat."""

    def __init__(self, path: Path, tensorboard: Path | None = None) -> None:
        self.path = path
        self._writer: Any = None
        if tensorboard is not None:
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(str(tensorboard))

    def write(self, record: dict[str, Any]) -> None:
        with explained(self.path), self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        if self._writer is not None:
            for name, value in _numbers(record):
                self._writer.add_scalar(f"{record['stage']}/{name}", value, record["step"])

    def position(self) -> int:
        """Where the next record will start, with everything before it safely on the disk."""
        with explained(self.path), self.path.open("ab") as file:
            os.fsync(file.fileno())
            return file.tell()

    def rewind(self, position: int) -> None:
        """Forget records from `position` on."""
        if self.path.exists() and self.path.stat().st_size > position:
            with explained(self.path):
                os.truncate(self.path, position)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The records of a finished, running or interrupted run, layers by the names of today."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        raise CheckpointError(
            f"{path} does not exist: the run has not begun to train, there is nothing to show"
        ) from None
    records = []
    for number, line in enumerate(lines, 1):
        try:
            record = json.loads(line)
        except ValueError as error:
            if number == len(lines):
                break  # half written, because the run goes on or was killed
            raise CheckpointError(f"line {number} of {path} is damaged: {error}") from error
        records.append(record | {"usage": by_todays_name(record["usage"])} if "usage" in record else record)
    return records


def _numbers(record: dict[str, Any], prefix: str = "") -> list[tuple[str, float]]:
    found: list[tuple[str, float]] = []
    for name, value in record.items():
        if isinstance(value, dict):
            found += _numbers(value, f"{prefix}{name}/")
        elif isinstance(value, list):
            found += _numbers({str(i): item for i, item in enumerate(value)}, f"{prefix}{name}/")
        elif isinstance(value, int | float) and name not in ("step", "epoch"):
            found.append((prefix + name, float(value)))
    return found
