"""A run's directory: where everything of a run lies, and the checks before anything in it is touched."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import unified_diff
from pathlib import Path
from typing import Any

from ebnet.errors import CheckpointError, ConfigError
from ebnet.files import write_atomically
from ebnet.models.network import ExpertBinaryNetwork
from ebnet.recipe.binding import binding
from ebnet.recipe.phases import PHASE_NAMES, PhaseName
from ebnet.recipe.settings import Recipe, load_recipe
from ebnet.runs.checkpoint import load_checkpoint
from ebnet.runs.final import FINAL
from ebnet.runs.lock import locked
from ebnet.runs.metrics import read_metrics
from ebnet.runs.phase import PhaseDirectory, network_of
from ebnet.runs.results import PhaseResult

RECIPE, METRICS, PHASES, TENSORBOARD, LOCK = "recipe.toml", "metrics.jsonl", "stages", "tensorboard", ".lock"
TEACHER = "teacher.safetensors"
"""What a teacher from outside says about each training image."""


class RunDirectory:
    """RUN/recipe.toml, metrics.jsonl, stages/<n>-<name>/, final/."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.metrics = self.path / METRICS
        self.tensorboard = self.path / TENSORBOARD
        self.final = self.path / FINAL
        self.teacher_logits = self.path / TEACHER

    def phase(self, name: PhaseName) -> PhaseDirectory:
        return PhaseDirectory(self.path / PHASES / f"{PHASE_NAMES.index(name)}-{name}")

    def trained(self) -> list[PhaseName]:
        """The phases of the recipe that have a network, finished or not, in order."""
        return [name for name in self.recipe().stages if self.phase(name).last.exists()]

    def finished(self) -> dict[PhaseName, PhaseResult]:
        """What came of each phase that is finished, in order."""
        states = {name: self.phase(name).state() for name in self.recipe().stages}
        return {name: state.position.result for name, state in states.items() if state and state.position.result}

    def epochs(self) -> list[dict[str, Any]]:
        """The records of the epochs so far, in order; none of a run that has not begun."""
        records = read_metrics(self.metrics) if self.metrics.exists() else []
        return [record for record in records if record["kind"] == "epoch"]

    def recipe(self) -> Recipe:
        """The recipe this run was started with."""
        if not (self.path / RECIPE).is_file():
            raise CheckpointError(f"{self.path} is not the directory of a training run: it has no {RECIPE}")
        return load_recipe(self.path / RECIPE)

    @property
    def in_use(self) -> bool:
        """Whether a process is training here."""
        if not (self.path / LOCK).exists():
            return False
        with locked(self.path / LOCK) as free:
            return not free

    @contextmanager
    def claimed(self, recipe: Recipe) -> Iterator[None]:
        """Make or check the directory, and keep other processes from training in it at the same time."""
        self._check(recipe)
        with locked(self.path / LOCK) as mine:
            if not mine:
                raise ConfigError(f"another process is training in {self.path}; use another --out")
            write_atomically(self.path / RECIPE, recipe.to_toml().encode())
            yield

    def drop_checkpoints(self) -> None:
        """Keep the recipe and the metrics alone."""
        shutil.rmtree(self.path / PHASES, ignore_errors=True)

    def _check(self, recipe: Recipe) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise ConfigError(f"{self.path} is a file, not a directory to train in; use another --out")
        if not self.path.exists() or not any(self.path.iterdir()):
            return
        if not (self.path / RECIPE).exists():
            if {entry.name for entry in self.path.iterdir()} <= {LOCK, f".{RECIPE}.tmp"}:
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


def load_phase(run: str | Path, name: PhaseName, best: bool = False) -> ExpertBinaryNetwork:
    """The network at the end of a phase of a run, or where it was best on the validation pictures."""
    directory = RunDirectory(run)
    phase = directory.phase(name)
    path = phase.best if best else phase.last
    if not path.exists():
        have = [name for name in PHASE_NAMES if directory.phase(name).last.exists()]
        raise CheckpointError(f"{path} does not exist; {run} has the phases: {', '.join(have) or 'none yet'}")
    return network_of(load_checkpoint(path))
