"""Several processes share one study, also when one of them is killed."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from optuna.trial import TrialState

from ebnet.search.population import population
from ebnet.search.study import Study
from ebnet.search.worker import Worker
from tests.search import postgres
from tests.search.slow_worker import GRACE, HEARTBEAT
from tests.search.studies import formula, settings, study

CHOSEN = settings(per_direction=2, combinations=2)
ROOT = Path(__file__).parents[2]


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def url(request):
    if request.param == "sqlite":
        yield ""
        return
    if postgres.binaries() is None:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    with postgres.server() as address:
        yield address


def start(directory: Path, url: str, log: Path, seconds: float) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.search.slow_worker", str(directory), url, str(log), str(seconds)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    return subprocess.Popen(command, cwd=ROOT, env=environment)


def lines(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


def wait_for_lines(log: Path, count: int) -> None:
    end = time.monotonic() + 60
    while len(lines(log)) < count:
        assert time.monotonic() < end, f"{log} never got {count} lines"
        time.sleep(0.02)


def trials(shared: Study) -> list[tuple[str, TrialState]]:
    found = shared.storage.get_all_trials(shared.storage.get_study_id_from_name(shared.name))
    return [(trial.user_attrs["candidate"], trial.state) for trial in found]


@pytest.mark.slow
def test_a_killed_workers_candidate_is_taken_up(url, tmp_path):
    shared = study(tmp_path / "study", CHOSEN, url or None, heartbeat=HEARTBEAT, grace=GRACE)
    logs = [tmp_path / "first", tmp_path / "second"]
    victim = start(shared.directory, url, logs[0], seconds=600)
    try:
        wait_for_lines(logs[0], 1)
    finally:
        os.kill(victim.pid, signal.SIGKILL)
        victim.wait()
    (lost,) = lines(logs[0])
    workers = [start(shared.directory, url, log, seconds=0.2) for log in logs]
    try:
        assert [worker.wait(100) for worker in workers] == [0, 0]
    finally:
        for worker in workers:
            worker.kill()
    results = Counter(key for key, state in trials(shared) if state is TrialState.COMPLETE)
    planned = {p.candidate.key for sweep in shared.ledger.read().sweeps for p in sweep.proposals}
    assert lost in results
    assert set(results) == planned
    assert set(results.values()) == {1}
    assert (lost, TrialState.FAIL) in trials(shared)
    evaluations = Counter(lines(logs[0]) + lines(logs[1]))
    assert evaluations.pop(lost) == 2
    assert set(evaluations.values()) == {1}
    assert len(lines(logs[0])) > 1, "the first worker had nothing to do"
    assert lines(logs[1]), "the second worker had nothing to do"
    assert population(shared).finished

    alone = study(tmp_path / "alone", CHOSEN)
    Worker(alone, formula, poll=0.01).run()
    assert shared.ledger.read().sweeps == alone.ledger.read().sweeps


def test_many_claims_at_once_give_each_candidate_to_one_worker(url, tmp_path):
    shared = study(tmp_path / "study", CHOSEN, url or None)
    log = tmp_path / "log"
    workers = [start(shared.directory, url, log, seconds=0.0) for _ in range(3)]
    assert [worker.wait(100) for worker in workers] == [0] * 3
    assert set(Counter(lines(log)).values()) == {1}
    assert set(lines(log)) == {key for key, state in trials(shared) if state is TrialState.COMPLETE}
