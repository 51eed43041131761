"""How good a candidate is: training it with Stage I at the reduced schedule."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from ebnet.errors import StudyError
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

        epochs = 0

        def on_epoch(record: dict[str, Any]) -> None:
            nonlocal epochs
            epochs += 1
            if "val" in record:
                report(epochs, record["val"]["top1"])

        run = _free_directory(self._directory / "candidates" / _file_name(candidate))
        result = train(self._recipe(candidate), run.path, datasets=self._datasets, on_epoch=on_epoch)
        run.drop_checkpoints()
        return result.last.top1

    def _recipe(self, candidate: Candidate) -> Any:
        recipe = self._settings.reduced(candidate)
        return recipe if self._data is None else recipe.changed({"data.root": str(self._data.resolve())})


def _file_name(candidate: Candidate) -> str:
    return candidate.key.replace(":", ".").replace(" ", "_")


def _free_directory(path: Path) -> RunDirectory:
    """`path`, or a numbered one beside it while a worker that was given up for dead still trains there."""
    for number in range(1, 100):
        run = RunDirectory(path if number == 1 else path.with_name(f"{path.name}.{number}"))
        if not run.in_use:
            return run
    raise StudyError(f"{path} and its numbered neighbours are all in use; end the workers that train there")
