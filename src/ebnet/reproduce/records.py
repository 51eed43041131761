"""What was measured, one JSON file a trained phase: `results/runs/KEY.json`. No weights."""

import json
import os
import platform
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

import ebnet
from ebnet.cost import profile
from ebnet.errors import CheckpointError
from ebnet.files import write_atomically
from ebnet.models.network import ExpertBinaryNetwork
from ebnet.reproduce.chain import Link
from ebnet.runs.results import PhaseResult

COSTS = ("bops", "real_macs", "flops", "binary_weights", "real_parameters", "bytes_fp32", "bytes_fp16")


class Records:
    """The records in a directory."""

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)

    def path(self, key: str) -> Path:
        return self.directory / "runs" / f"{key}.json"

    def has(self, key: str) -> bool:
        return self.path(key).exists()

    def failed(self, key: str) -> bool:
        return self.has(key) and "failed" in self.read(key)

    def read(self, key: str) -> dict[str, Any]:
        try:
            record: dict[str, Any] = json.loads(self.path(key).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise CheckpointError(
                f"{self.path(key)} cannot be read ({error}); delete it to measure it again"
            ) from error
        if record.get("key") != key:
            raise CheckpointError(f"{self.path(key)} is the record of {record.get('key')}; delete it")
        return record

    def write(self, record: dict[str, Any]) -> None:
        path = self.path(record["key"])
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, (json.dumps(record, indent=1) + "\n").encode())

    @cached_property
    def machine(self) -> dict[str, Any]:
        """What made the numbers, for those who compare them with theirs."""
        import torch

        return {
            "ebnet": ebnet.__version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
            "processor": f"{platform.machine()}, {torch.backends.cpu.get_cpu_capability()}",
            "cores": os.cpu_count(),
        }

    def record(
        self,
        link: Link,
        result: PhaseResult,
        train_top1: float,
        epochs: list[dict[str, Any]],
        network: ExpertBinaryNetwork,
    ) -> dict[str, Any]:
        """The record of a finished phase; `train_top1` is of training images, as validation shows them."""
        cost = profile(network, link.recipe.data.size).to_dict()
        return self._identity(link) | {
            "top1": result.top1,
            "top5": result.top5,
            "loss": result.loss,
            "train_top1": train_top1,
            "usage": result.usage,
            "seconds": result.seconds,
            "images_per_second": result.images_per_second,
            "epochs": epochs,
            "cost": {name: cost[name] for name in COSTS},
        }

    def failure(self, link: Link, why: str) -> dict[str, Any]:
        """The record of a phase whose training broke down: that too is a result."""
        return self._identity(link) | {"failed": why}

    def _identity(self, link: Link) -> dict[str, Any]:
        recipe = link.recipe.model_dump(mode="json", exclude_none=True)
        recipe["data"].pop("root", None)
        return {
            "key": link.key,
            "stage": link.phase,
            "seed": link.recipe.seed,
            "after": [before.key for before in link.before],
            "recipe": recipe,
            "made_with": self.machine,
        }


def left(links: Iterable[Link], records: Records) -> list[Link]:
    """Those that have no record yet."""
    return [link for link in links if not records.has(link.key)]
