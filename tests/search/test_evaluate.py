"""A candidate's training, through interruptions and failures."""

from pathlib import Path

import pytest

from ebnet.search.candidate import Candidate
from ebnet.search.evaluate import StageOneTraining
from ebnet.search.population import population
from ebnet.search.study import MAX_ATTEMPTS
from ebnet.search.worker import Worker
from tests.search.studies import formula, settings, study
from tests.train.tiny import tiny

CANDIDATE = Candidate.parse("1111-0.0625-1:1:1:2 x2")
EPOCHS = 2


def _training(directory: Path) -> StageOneTraining:
    recipe = tiny().model_dump(mode="json", exclude_none=True)
    network = tiny().network.config(10, 3, 2).to_dict()
    return StageOneTraining(settings(recipe=recipe, network=network, directions=("experts",), epochs=EPOCHS), directory)


def test_a_resumed_candidate_is_compared_at_its_own_rungs(tmp_path: Path) -> None:
    """Both phases of two epochs are rungs 1 to 4, whichever process trained them."""
    whole: list[tuple[int, float]] = []
    accuracy = _training(tmp_path / "whole")(CANDIDATE, lambda *rung: whole.append(rung))
    assert [epoch for epoch, _ in whole] == [1, 2, 3, 4]

    def killed(epoch: int, accuracy: float) -> None:
        if epoch == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _training(tmp_path / "stopped")(CANDIDATE, killed)
    rungs: list[tuple[int, float]] = []
    assert _training(tmp_path / "stopped")(CANDIDATE, lambda *rung: rungs.append(rung)) == accuracy
    assert rungs == whole


def test_a_candidate_that_breaks_workers_is_given_up_and_one_worker_survives(tmp_path: Path) -> None:
    shared, tried = study(tmp_path / "study"), []

    def one_breaks(candidate, report):  # type: ignore[no-untyped-def]
        tried.append(candidate)
        if candidate == tried[0]:
            raise RuntimeError("out of memory")
        return formula(candidate, report)

    Worker(shared, one_breaks, poll=0.01).run()
    found = population(shared)
    assert found.finished
    (failed,) = [member.entry for member in found.members if member.entry.state == "failed"]
    assert failed.fault == f"{MAX_ATTEMPTS} attempts to train it failed; the last: RuntimeError: out of memory"
    assert tried.count(tried[0]) == MAX_ATTEMPTS


def test_a_worker_that_fails_at_everything_ends_before_it_spoils_the_study(tmp_path: Path) -> None:
    shared, tried = study(tmp_path / "study"), []

    def broken(candidate, report):  # type: ignore[no-untyped-def]
        tried.append(candidate)
        raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space left"):
        Worker(shared, broken, poll=0.01).run()
    assert len(tried) <= MAX_ATTEMPTS
    assert not [entry for entry in shared.entries().values() if entry.state == "failed"]
    Worker(study(tmp_path / "study"), formula, poll=0.01).run()
    assert population(shared).count("trained") == len(population(shared).members)
