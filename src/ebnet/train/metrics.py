"""What is measured: accuracy, loss terms, expert usage; reduced over processes and written as JSON lines."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ebnet.errors import CheckpointError
from ebnet.files import explained
from ebnet.train.distributed import sum_over_ranks


@dataclass
class Meter:
    """Averages over pictures, of any number of named quantities."""

    count: float = 0.0
    sums: dict[str, float] = field(default_factory=dict)

    def add(self, count: int, **means: float) -> None:
        """Take in the means of `count` pictures."""
        self.count += count
        for name, mean in means.items():
            self.sums[name] = self.sums.get(name, 0.0) + mean * count

    def averages(self, device: torch.device | None = None) -> dict[str, float]:
        """Over all processes, each of which must have added the same names."""
        names = sorted(self.sums)
        values = torch.tensor([self.count, *(self.sums[name] for name in names)], dtype=torch.float64, device=device)
        count, *sums = sum_over_ranks(values).tolist()
        return {name: total / max(count, 1.0) for name, total in zip(names, sums, strict=True)}

    def to_dict(self) -> dict[str, Any]:
        return {"count": self.count, "sums": self.sums}


def top_k(logits: Tensor, labels: Tensor) -> tuple[float, float]:
    """The shares of pictures whose class is the first, and is among the first five, of the predictions."""
    best = logits.topk(min(5, logits.shape[1]), dim=1).indices == labels[:, None]
    return best[:, 0].float().mean().item(), best.any(1).float().mean().item()


class ExpertUsage:
    """How often each layer picked each expert."""

    def __init__(self) -> None:
        self.counts: dict[str, Tensor] = {}

    def add(self, layers: Mapping[str, Any]) -> None:
        """Take in the choices of the layers' last forward pass; layers of one expert have none to make."""
        for name, layer in layers.items():
            experts, chosen = layer.num_experts, getattr(layer, "last_experts", None)
            if experts > 1 and isinstance(chosen, Tensor):
                picked = torch.bincount(chosen, minlength=experts).double()
                self.counts[name] = self.counts[name] + picked if name in self.counts else picked

    def shares(self) -> dict[str, list[float]]:
        """For each layer the fraction of pictures of each expert, over all processes."""
        return {
            name: (total / total.sum().clamp(min=1)).tolist()
            for name, total in ((name, sum_over_ranks(count.clone())) for name, count in self.counts.items())
        }


def collapsed(usage: dict[str, list[float]], threshold: float) -> list[str]:
    """A sentence for each layer in which one expert takes more than `threshold` of the pictures."""
    return [
        f"expert {shares.index(max(shares))} of {name} takes {max(shares):.1%} of the pictures"
        for name, shares in usage.items()
        if max(shares) > threshold
    ]


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
    """The records of a finished, running or interrupted run."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise CheckpointError(
            f"{path} does not exist: the run has not begun to train, there is nothing to show"
        ) from None
    # The last line may be half written while the run goes on.
    return [json.loads(line) for line in lines if line.endswith("}")]


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
