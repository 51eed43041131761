"""A study: its decisions, and its candidates with their results, shared by any number of workers.

Each candidate is an Optuna trial that waits, runs and completes. What makes it safe to share:

- Claiming a waiting trial is one transaction of the database; of two workers only one succeeds.
- Two workers may put the same candidate into the queue. Numbers are a total order, so whoever claims the later one of
  two sees the earlier one and drops its own: a candidate never has two results.
- A worker that dies stops its heartbeat. The others then fail its trial and queue the candidate again. Should it be
  alive after all, the database refuses its late result.
"""

import os
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

import optuna
from optuna.exceptions import UpdateFinishedTrialError
from optuna.pruners import NopPruner, SuccessiveHalvingPruner
from optuna.storages import RDBStorage, fail_stale_trials
from optuna.trial import FrozenTrial, TrialState, create_trial

from ebnet.errors import StudyError
from ebnet.search.candidate import Candidate
from ebnet.search.ledger import Ledger
from ebnet.search.settings import Settings

KEY, FAULT, DUPLICATE, WORKER, SECONDS = "candidate", "fault", "duplicate", "worker", "seconds"
ATTEMPT = "attempt"
"""What went wrong in an attempt that may be repeated."""

MAX_ATTEMPTS = 3
"""So often the training of a candidate may fail, or its worker die, before it is given up."""

HALVING_FACTOR = 3
"""Successive halving: a candidate goes on past epochs 1, 3, 9... only while among the best third there."""

State = Literal["waiting", "running", "trained", "pruned", "failed"]


@dataclass(frozen=True)
class Entry:
    """One candidate of the study, as it stands."""

    candidate: Candidate
    state: State
    number: int
    accuracy: float | None = None
    seconds: float | None = None
    worker: str | None = None
    fault: str | None = None

    @property
    def finished(self) -> bool:
        return self.state in ("trained", "pruned", "failed")


@dataclass(frozen=True)
class Claim:
    """A candidate that this process is to evaluate now."""

    trial_id: int
    candidate: Candidate


class Study:
    """The study `name` in a storage."""

    def __init__(self, storage: RDBStorage, name: str, directory: Path) -> None:
        self.storage, self.name, self.directory = storage, name, directory
        self.ledger = Ledger(storage, name)

    def create(self, settings: Settings) -> Self:
        """Begin the study, or go on with it if it has exactly these settings."""
        optuna.create_study(storage=self.storage, study_name=self.name, direction="maximize", load_if_exists=True)
        self.ledger.create(settings)
        kept = self.ledger.read().settings.to_dict()
        asked = settings.to_dict()
        # Measured anew each time, so never quite the same.
        other = [key for key in asked if key != "machine" and _plain(kept[key]) != _plain(asked[key])]
        if other:
            raise StudyError(
                f"the study {self.name} was begun with other settings ({', '.join(other)}); use another --out, or "
                "the same settings to go on with it"
            )
        return self

    @cached_property
    def _study_id(self) -> int:
        try:
            return self.storage.get_study_id_from_name(self.name)
        except KeyError as error:
            raise StudyError(f"the storage has no study {self.name!r}") from error

    @cached_property
    def _study(self) -> optuna.Study:
        prune = self.ledger.read().settings.prune
        pruner = SuccessiveHalvingPruner(min_resource=1, reduction_factor=HALVING_FACTOR) if prune else NopPruner()
        return optuna.load_study(storage=self.storage, study_name=self.name, pruner=pruner)

    def entries(self) -> dict[str, Entry]:
        """Every candidate by key, in the order in which they were queued."""
        found: dict[str, list[FrozenTrial]] = {}
        for trial in self._trials():
            found.setdefault(trial.user_attrs[KEY], []).append(trial)
        return {key: entry for key, trials in found.items() if (entry := _entry(key, trials)) is not None}

    def accuracies(self) -> dict[str, float]:
        """Of the candidates that were trained to the end."""
        return {key: e.accuracy for key, e in self.entries().items() if e.state == "trained" and e.accuracy is not None}

    def queue(self, candidates: list[Candidate]) -> None:
        """Put those in the queue that nobody has yet."""
        known = self.entries()
        for candidate in candidates:
            if candidate.key not in known:
                attributes = {KEY: candidate.key}
                self._study.add_trial(create_trial(state=TrialState.WAITING, user_attrs=attributes))

    def give_up_dead_workers(self) -> None:
        """Fail the trials whose workers are no longer heard of."""
        fail_stale_trials(self._study)

    def claim(self, candidates: list[Candidate]) -> Claim | None:
        """Take one of these candidates from the queue; None if all are taken."""
        wanted = {candidate.key for candidate in candidates}
        for trial in self._trials():
            key = trial.user_attrs[KEY]
            if trial.state is not TrialState.WAITING or key not in wanted:
                continue
            identity = trial._trial_id
            # Before the claim, because a running trial without any heartbeat would never be given up.
            self.storage.record_heartbeat(identity)
            try:
                if not self.storage.set_trial_state_values(identity, TrialState.RUNNING):
                    continue
            except UpdateFinishedTrialError:
                continue
            if self._taken_before(key, trial.number):
                self._finish(identity, TrialState.FAIL, {DUPLICATE: True})
                continue
            self.storage.set_trial_user_attr(identity, WORKER, f"{socket.gethostname()}:{os.getpid()}")
            return Claim(identity, Candidate.parse(key))
        return None

    def complete(self, claim: Claim, accuracy: float, seconds: float) -> bool:
        """Record a result; False if the candidate has meanwhile been given to another worker."""
        return self._finish(claim.trial_id, TrialState.COMPLETE, {SECONDS: seconds}, [accuracy])

    def prune(self, claim: Claim, seconds: float) -> None:
        self._finish(claim.trial_id, TrialState.PRUNED, {SECONDS: seconds})

    def fail(self, claim: Claim, fault: str) -> None:
        """Record that the candidate cannot be trained, so that nobody tries again."""
        self._finish(claim.trial_id, TrialState.FAIL, {FAULT: fault})

    def fail_attempt(self, claim: Claim, why: str) -> None:
        """Record that an attempt failed; the candidate is queued again until it has had `MAX_ATTEMPTS`."""
        self._finish(claim.trial_id, TrialState.FAIL, {ATTEMPT: why})

    def release(self, claim: Claim) -> None:
        """Give a candidate back to the queue."""
        self._finish(claim.trial_id, TrialState.WAITING, {})

    def report(self, claim: Claim, epoch: int, accuracy: float) -> bool:
        """Record an accuracy on the way; True if it is hopeless to go on."""
        trial = optuna.Trial(self._study, claim.trial_id)
        if epoch not in self.storage.get_trial(claim.trial_id).intermediate_values:
            trial.report(accuracy, epoch)
        return trial.should_prune()

    def _taken_before(self, key: str, number: int) -> bool:
        for trial in self._trials():
            if trial.user_attrs[KEY] == key and trial.number != number:
                if trial.state in (TrialState.COMPLETE, TrialState.PRUNED):
                    return True
                if trial.state in (TrialState.WAITING, TrialState.RUNNING) and trial.number < number:
                    return True
        return False

    def _finish(
        self, trial_id: int, state: TrialState, attributes: Mapping[str, Any], values: list[float] | None = None
    ) -> bool:
        try:
            for name, value in attributes.items():
                self.storage.set_trial_user_attr(trial_id, name, value)
            return self.storage.set_trial_state_values(trial_id, state, values)
        except UpdateFinishedTrialError:
            return False

    def _trials(self) -> Iterator[FrozenTrial]:
        trials = self.storage.get_all_trials(self._study_id, deepcopy=False)
        return iter(sorted(trials, key=lambda trial: trial.number))


def _entry(key: str, trials: list[FrozenTrial]) -> Entry | None:
    """What several trials of one candidate come to; None if it has to be queued (again)."""
    trials = [trial for trial in trials if DUPLICATE not in trial.user_attrs]
    by_state = {state: [trial for trial in trials if trial.state is state] for state in TrialState}
    names: tuple[tuple[TrialState, State], ...] = (
        (TrialState.COMPLETE, "trained"),
        (TrialState.PRUNED, "pruned"),
        (TrialState.RUNNING, "running"),
        (TrialState.WAITING, "waiting"),
    )
    for state, name in names:
        if by_state[state]:
            return _view(key, by_state[state][0], name)
    failed = by_state[TrialState.FAIL]
    for trial in failed:
        if FAULT in trial.user_attrs:
            return _view(key, trial, "failed", trial.user_attrs[FAULT])
    if len(failed) >= MAX_ATTEMPTS:
        last = failed[-1].user_attrs.get(ATTEMPT, "its worker died")
        return _view(key, failed[-1], "failed", f"{len(failed)} attempts to train it failed; the last: {last}")
    return None


def _view(key: str, trial: FrozenTrial, state: State, fault: str | None = None) -> Entry:
    accuracy = trial.value if state == "trained" else None
    if state == "pruned" and trial.intermediate_values:
        accuracy = trial.intermediate_values[max(trial.intermediate_values)]
    attributes = trial.user_attrs
    return Entry(
        Candidate.parse(key), state, trial.number, accuracy, attributes.get(SECONDS), attributes.get(WORKER), fault
    )


def _plain(value: Any) -> Any:
    """A value as JSON gives it back."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value
