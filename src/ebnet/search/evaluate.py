"""How good a candidate is: training it with Stage I at the reduced schedule."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from ebnet.errors import StudyError
from ebnet.recipe.settings import Recipe
from ebnet.runs.directory import RunDirectory
from ebnet.search.candidate import Candidate
from ebnet.search.settings import Settings

Report = Callable[[int, float], None]
"""Called after each epoch with its number, from 1, and the accuracy so far; may raise to end the training."""


class Evaluator(Protocol):
    def __call__(self, candidate: Candidate, report: Report) -> float:
        """The accuracy of a candidate on the validation pictures, as a share of 1."""


class StageOneTraining:
    """Trains candidates one after another on data that is opened once.

    A candidate's run lies in STUDY/candidates/NAME, so that whoever takes up an interrupted one on the same disk goes
    on where it stopped. When it is done the recipe and the metrics stay and the checkpoints go.
    """

    def __init__(self, settings: Settings, directory: Path, data: Path | None = None) -> None:
        from ebnet.train.pictures import Pictures

        self._settings, self._directory, self._data = settings, directory, data
        recipe = self._recipe(settings.strategy.base)
        pictures = Pictures.open(recipe.data)
        self._datasets = (pictures.train, pictures.val)

    def __call__(self, candidate: Candidate, report: Report) -> float:
        from ebnet.train.pipeline import train

        recipe = self._recipe(candidate)
        run = _free_directory(self._directory / "candidates" / _file_name(candidate))
        on_epoch = _Rungs(recipe, report)
        for record in run.epochs():  # of a training that stopped: they are compared at their own rungs
            on_epoch(record)
        result = train(recipe, run.path, datasets=self._datasets, on_epoch=on_epoch)
        run.drop_checkpoints()
        return result.last.top1

    def _recipe(self, candidate: Candidate) -> Recipe:
        recipe = self._settings.reduced(candidate)
        return recipe if self._data is None else recipe.changed({"data.root": str(self._data.resolve())})


class _Rungs:
    """Reports the epochs of a run, each once and by its number over all phases, whichever process trained it."""

    def __init__(self, recipe: Recipe, report: Report) -> None:
        self._report, self._reached = report, 0
        epochs = [recipe.settings(name).epochs for name in recipe.stages]
        self._before = {name: sum(epochs[:i]) for i, name in enumerate(recipe.stages)}

    def __call__(self, record: dict[str, Any]) -> None:
        epoch = self._before[record["stage"]] + record["epoch"] + 1
        if epoch > self._reached and "val" in record:
            self._reached = epoch
            self._report(epoch, record["val"]["top1"])


def _file_name(candidate: Candidate) -> str:
    return candidate.key.replace(":", ".").replace(" ", "_")


def _free_directory(path: Path) -> RunDirectory:
    """`path`, or a numbered one beside it while a worker that was given up for dead still trains there."""
    for number in range(1, 100):
        run = RunDirectory(path if number == 1 else path.with_name(f"{path.name}.{number}"))
        if not run.in_use:
            return run
    raise StudyError(f"{path} and its numbered neighbours are all in use; end the workers that train there")
