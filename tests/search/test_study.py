"""What a study promises to workers that race, die, stall or fail."""

import sqlite3
from dataclasses import replace

import pytest
from optuna.trial import TrialState

from ebnet.errors import ConfigError, NonFiniteError, StudyError
from ebnet.search.begin import extend_study
from ebnet.search.budget import Budget
from ebnet.search.candidate import Candidate
from ebnet.search.directory import open_study
from ebnet.search.population import population
from ebnet.search.settings import Machine
from ebnet.search.storage import complete_url, open_storage, shown_url
from ebnet.search.study import MAX_ATTEMPTS
from ebnet.search.worker import Worker
from tests.search.studies import formula, settings, study

ONE, TWO = Candidate.parse("1111-0.25-1:1:1:1"), Candidate.parse("1112-0.25-1:1:1:1")


def all_trials(shared):
    return shared.storage.get_all_trials(shared.storage.get_study_id_from_name(shared.name))


def test_a_candidate_is_queued_once_and_claimed_once(tmp_path):
    shared = study(tmp_path / "study")
    shared.queue([ONE, TWO])
    shared.queue([ONE, TWO])
    assert len(all_trials(shared)) == 2
    claims = [shared.claim([ONE, TWO]) for _ in range(3)]
    assert [claim and claim.candidate for claim in claims] == [ONE, TWO, None]


def test_of_two_entries_in_the_queue_the_later_is_dropped(tmp_path):
    shared, other = study(tmp_path / "study"), study(tmp_path / "study")
    # Both see an empty queue, as two processes may at the same moment.
    other.entries, shared.entries = dict, dict
    shared.queue([ONE])
    other.queue([ONE])
    assert len(all_trials(shared)) == 2
    first, second = shared.claim([ONE]), other.claim([ONE])
    assert first is not None
    assert second is None
    assert shared.complete(first, 0.5, 1.0)
    assert [trial.state for trial in all_trials(shared)] == [TrialState.COMPLETE, TrialState.FAIL]
    assert other.accuracies.__func__(study(tmp_path / "study")) == {ONE.key: 0.5}


def test_a_result_that_comes_after_the_candidate_was_given_up_is_refused(tmp_path):
    shared = study(tmp_path / "study")
    shared.queue([ONE])
    late = shared.claim([ONE])
    shared.storage.set_trial_state_values(late.trial_id, TrialState.FAIL)  # what the others do after the grace period
    shared.queue([ONE])
    again = shared.claim([ONE])
    assert again.trial_id != late.trial_id
    assert shared.complete(again, 0.7, 1.0)
    assert not shared.complete(late, 0.6, 1.0)
    assert shared.accuracies() == {ONE.key: 0.7}


def test_a_worker_given_up_for_dead_leaves_its_candidate_and_goes_on(tmp_path):
    shared, said = study(tmp_path / "study"), []
    stalled = []

    def stall_once(candidate, report):
        if not stalled:
            stalled.append(candidate)
            (running,) = [trial for trial in all_trials(shared) if trial.state is TrialState.RUNNING]
            shared.storage.set_trial_state_values(running._trial_id, TrialState.FAIL)
        return formula(candidate, report)

    Worker(shared, stall_once, say=said.append, poll=0.01).run()
    assert any("left to another worker" in line for line in said)
    assert population(shared).finished
    assert population(shared).count("trained") == len(population(shared).members)


def test_a_candidate_that_kills_every_worker_is_given_up(tmp_path):
    shared = study(tmp_path / "study")
    for _ in range(MAX_ATTEMPTS):
        shared.queue([ONE])
        claim = shared.claim([ONE])
        shared.storage.set_trial_state_values(claim.trial_id, TrialState.FAIL)
    entry = shared.entries()[ONE.key]
    assert entry.finished
    assert entry.state == "failed"
    assert entry.fault == f"{MAX_ATTEMPTS} attempts to train it failed; the last: its worker died"


def test_a_candidate_that_cannot_be_trained_is_recorded_and_the_study_goes_on(tmp_path):
    shared = study(tmp_path / "study")

    def wide_ones_diverge(candidate, report):
        if max(candidate.arch.expansion) > 0.25:
            raise NonFiniteError("the loss became nan")
        return formula(candidate, report)

    Worker(shared, wide_ones_diverge, poll=0.01).run()
    found = population(shared)
    failed = [member for member in found.members if member.entry.state == "failed"]
    assert failed
    assert {member.entry.fault for member in failed} == {"the loss became nan"}
    assert found.finished
    assert found.winner is not None


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), ConfigError("no such data")])
def test_a_worker_that_stops_gives_its_candidate_back(tmp_path, stop):
    shared = study(tmp_path / "study")

    def interrupted(candidate, report):
        raise stop

    with pytest.raises(type(stop)):
        Worker(shared, interrupted, poll=0.01).run()
    assert {entry.state for entry in shared.entries().values()} == {"waiting"}
    Worker(study(tmp_path / "study"), formula, poll=0.01).run()
    assert population(shared).finished


def test_the_database_and_not_the_order_of_reading_decides_on_a_sweep(tmp_path):
    shared = study(tmp_path / "study")
    Worker(shared, formula, poll=0.01).run()
    sweeps = shared.ledger.read().sweeps
    shared.ledger.sweep(0, sweeps[1], {})  # a second opinion on the first sweep, too late
    assert shared.ledger.read().sweeps == sweeps


def test_pruning_ends_hopeless_candidates_and_keeps_good_ones(tmp_path):
    shared = study(tmp_path / "study", settings(prune=True, per_direction=3))
    Worker(shared, formula, poll=0.01).run()
    found = population(shared)
    pruned = [m.entry.accuracy for m in found.members if m.entry.state == "pruned"]
    assert pruned
    assert found.winner is not None
    assert found.finished


def test_a_study_goes_on_with_the_same_settings_only(tmp_path):
    study(tmp_path / "study")
    study(tmp_path / "study")
    with pytest.raises(StudyError, match=r"other settings \(per_direction, seed\)"):
        study(tmp_path / "study", settings(seed=1, per_direction=3, combinations=1))


def test_an_extension_adds_rounds_from_the_best_network_on(tmp_path):
    shared = study(tmp_path / "study")
    Worker(shared, formula, poll=0.01).run()
    before = population(shared)
    extend_study(shared, (Budget("bops", 4e6),), 1)
    assert not population(shared).finished
    Worker(shared, formula, poll=0.01).run()
    after = population(shared)
    assert after.finished
    assert len(after.decisions.sweeps) == 6
    assert after.decisions.sweeps[4].origin == before.winner.candidate
    assert after.winner.accuracy > before.winner.accuracy
    assert 2e6 < after.winner.costs["bops"] <= 4e6
    with pytest.raises(ConfigError, match="no network within bops=3"):
        extend_study(shared, (Budget("bops", 3),), 1)
    with pytest.raises(ConfigError, match="has no latencies"):
        extend_study(shared, (Budget("latency_ms", 3),), 1)


def test_latencies_are_measured_once_and_kept(tmp_path):
    measured = []

    def measure(candidate):
        measured.append(candidate.key)
        return sum(candidate.arch.blocks) * 0.1

    chosen = settings(budgets=(Budget("latency_ms", 0.55),), machine=Machine("a CPU", "avx2", 1, 0.4))
    shared = study(tmp_path / "study", chosen)
    Worker(shared, formula, measure, poll=0.01).run()
    assert len(set(measured)) == len(measured)
    found = population(shared)
    assert {round(member.costs["latency_ms"], 3) for member in found.members} <= {0.4, 0.5}
    assert found.to_dict()["machine"] == "a CPU, avx2 kernels, 1 thread"


def test_a_machine_that_may_not_measure_waits(tmp_path, monkeypatch):
    chosen = settings(budgets=(Budget("latency_ms", 0.55),), machine=Machine("another CPU", "avx512", 1, 0.4))
    said = []

    def no_time(seconds):
        raise TimeoutError

    monkeypatch.setattr("time.sleep", no_time)
    with pytest.raises(TimeoutError):
        Worker(study(tmp_path / "study", chosen), formula, None, said.append).run()
    assert said == ["waiting for a worker on the machine whose latency counts (another CPU, avx512 kernels, 1 thread)"]


def test_addresses():
    assert complete_url("postgresql://me@db/x") == "postgresql+psycopg://me@db/x"
    assert complete_url("postgres://me@db/x") == "postgresql+psycopg://me@db/x"
    assert "secret" not in shown_url("postgresql://me:secret@db/x")


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("nonsense", "not an address"),
        ("mysql://me@db/x", "mysql is not supported"),
        ("postgresql://me@127.0.0.1:1/x", "cannot be used: .*[Cc]onnection"),
        ("sqlite:////nowhere/at/all.db", "cannot be used: unable to open"),
    ],
)
def test_broken_storage_is_named(url, reason):
    with pytest.raises(StudyError, match=reason):
        open_storage(url)


def test_a_damaged_file_is_named(tmp_path):
    shared = study(tmp_path / "study")
    shared.storage.engine.dispose()
    (tmp_path / "study" / "study.db").write_bytes(b"this is no database, whatever its name says" * 100)
    with pytest.raises(StudyError, match="cannot be used: file is not a database"):
        open_study(tmp_path / "study")


def test_what_is_no_study_is_named(tmp_path):
    with pytest.raises(StudyError, match=r"has no study.json.*--storage"):
        open_study(tmp_path / "nothing")
    (tmp_path / "file").write_text("")
    with pytest.raises(StudyError, match="is a file"):
        study(tmp_path / "file")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("")
    with pytest.raises(StudyError, match="something else"):
        study(tmp_path / "full")


def test_a_database_without_the_study_is_named(tmp_path):
    study(tmp_path / "one")
    url = f"sqlite:///{tmp_path / 'one' / 'study.db'}"
    assert open_study(tmp_path / "elsewhere" / "one", url).ledger.read().settings == settings()
    with pytest.raises(StudyError, match="no study 'two'"):
        open_study(tmp_path / "two", url)


def test_sqlite_transactions_take_the_lock_when_they_begin(tmp_path):
    """Without it two processes could both read a trial as waiting and both claim it."""
    shared = study(tmp_path / "study")
    with shared.storage.engine.begin():
        other = sqlite3.connect(tmp_path / "study" / "study.db", timeout=0.01)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")
        other.close()


def test_settings_survive_json():
    chosen = settings(directions=("depth", "experts"))
    assert type(chosen).from_dict(chosen.to_dict()) == chosen
    with pytest.raises(ConfigError, match="directions depth, sideways"):
        replace(chosen, directions=("depth", "sideways"))
    with pytest.raises(ConfigError, match="rounds=0"):
        replace(chosen, rounds=0)
