"""A run's directory: where everything of a run lies, and the checks before anything in it is touched."""

import fcntl
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import unified_diff
from pathlib import Path
from typing import Any

from ebnet.errors import CheckpointError, ConfigError
from ebnet.files import explained, sync_directory, write_atomically
from ebnet.models.network import ExpertBinaryNetwork
from ebnet.train.distributed import barrier, rank
from ebnet.train.recipe import Recipe, StageName, load_recipe
from ebnet.train.recipe_text import write_toml
from ebnet.train.results import StageResult
from ebnet.train.stages import STAGES

RECIPE, METRICS, FINAL, STATE = "recipe.toml", "metrics.jsonl", "final", "state.json"

_FREE = {"description": None, "log": None, "data": ("root", "workers"), "compute": ("device", "threads")}
"""Settings that may change between the parts of a run, because the weights do not depend on them."""


class RunDirectory:
    """RUN/recipe.toml, metrics.jsonl, stages/<n>-<name>/, final/."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.metrics = self.path / METRICS
        self.final = self.path / FINAL

    def stage(self, name: StageName) -> Path:
        return self.path / "stages" / STAGES[name].directory

    def recipe(self) -> Recipe:
        """The recipe this run was started with."""
        if not (self.path / RECIPE).is_file():
            raise CheckpointError(f"{self.path} is not the directory of a training run: it has no {RECIPE}")
        return load_recipe(self.path / RECIPE)

    @contextmanager
    def claimed(self, recipe: Recipe) -> Iterator[None]:
        """Make or check the directory, and keep other processes from training in it at the same time."""
        if rank() > 0:
            barrier()  # until the first process has found everything in order
            yield
            return
        self._check(recipe)
        with explained(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            lock = (self.path / ".lock").open("w")
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise ConfigError(f"another process is training in {self.path}; use another --out") from error
            write_atomically(self.path / RECIPE, recipe.to_toml().encode())
            barrier()
            yield

    def _check(self, recipe: Recipe) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise ConfigError(f"{self.path} is a file, not a directory to train in; use another --out")
        if not self.path.exists() or not any(self.path.iterdir()):
            return
        if not (self.path / RECIPE).exists():
            if {entry.name for entry in self.path.iterdir()} <= {".lock", f".{RECIPE}.tmp"}:
                return  # a run that was killed before it had written its recipe
            raise ConfigError(f"{self.path} holds something else than a training run; use another --out")
        before, now = binding(self.recipe()), binding(recipe)
        if before != now:
            lines = unified_diff(before.splitlines(), now.splitlines(), "the run so far", "asked for", lineterm="", n=0)
            difference = "\n".join(f"  {line}" for line in lines if not line.startswith("@@"))
            raise ConfigError(
                f"{self.path} was begun with another recipe; nothing was changed. Use another --out, or the same "
                f"settings:\n{difference}"
            )

    def write_state(self, name: StageName, state: dict[str, Any]) -> None:
        """`state.json`: the state of the stage's last checkpoint, for people and other programs."""
        write_atomically(self.stage(name) / STATE, (json.dumps(state, indent=2) + "\n").encode())

    def write_final(self, network: ExpertBinaryNetwork, preprocessing: dict[str, Any], labels: list[str]) -> None:
        """RUN/final: the finished network and what is needed to use it; there whole, or not at all."""
        fresh = self.path / f".{FINAL}.tmp"
        with explained(self.final):
            shutil.rmtree(fresh, ignore_errors=True)
            fresh.mkdir()
            network.save_pretrained(fresh)
        write_atomically(fresh / "preprocessing.json", (json.dumps(preprocessing, indent=2) + "\n").encode())
        write_atomically(fresh / "labels.json", (json.dumps(labels, indent=2) + "\n").encode())
        with explained(self.final):
            shutil.rmtree(self.final, ignore_errors=True)
            fresh.rename(self.final)
            sync_directory(self.path)


def finished_stages(run: RunDirectory) -> dict[str, StageResult]:
    """What came of each stage that is finished, in order."""
    results: dict[str, StageResult] = {}
    for name in run.recipe().stages:
        state = run.stage(name) / STATE
        result = json.loads(state.read_text())["position"]["result"] if state.is_file() else None
        if result:
            results[name] = StageResult.from_dict(result)
    return results


def binding(recipe: Recipe, exclude_defaults: bool = False) -> str:
    """The settings that make the run what it is, as text to compare."""
    values = recipe.model_dump(mode="json", exclude_none=True, exclude_defaults=exclude_defaults)
    for table, keys in _FREE.items():
        if keys is None:
            values.pop(table, None)
        elif table in values:
            values[table] = {key: value for key, value in values[table].items() if key not in keys}
    return write_toml(spread(values))


def spread(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as one flat table of dotted names, so that a line of a difference says where it belongs."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        flat |= spread(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return flat
