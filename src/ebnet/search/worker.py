"""A worker: takes candidates from the study, evaluates them, and decides on the next sweep when one is over."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from optuna.exceptions import OptunaError, UpdateFinishedTrialError
from sqlalchemy.exc import SQLAlchemyError

from ebnet.errors import Interrupted, NonFiniteError
from ebnet.search.budget import Measure, Prices
from ebnet.search.candidate import Candidate
from ebnet.search.directions import next_sweep
from ebnet.search.evaluate import Evaluator
from ebnet.search.ledger import Decisions
from ebnet.search.storage import HEARTBEAT_SECONDS
from ebnet.search.study import Claim, Study

POLL_SECONDS = 1.0

TOO_MANY = 2
"""Different candidates in a row that a worker may fail at before it ends."""

NOT_THE_CANDIDATES = (KeyboardInterrupt, SystemExit, OptunaError, SQLAlchemyError)
"""The user's wish, or the storage out of reach: another worker shall have the candidate, as if nothing had been."""

Say = Callable[[str], None]


class Hopeless(Exception):
    """Successive halving ends a training."""


class TakenUp(Exception):
    """This worker was given up for dead, and another one has its candidate."""


class Worker:
    """Works on a study until it is finished.

    Args:
        evaluator: trains candidates.
        measure: measures a latency; None where the study's latencies belong to another machine.
        say: hears of progress.
        heartbeat: seconds between two signs of life.
    """

    def __init__(
        self,
        study: Study,
        evaluator: Evaluator,
        measure: Measure | None = None,
        say: Say = lambda message: None,
        poll: float = POLL_SECONDS,
        heartbeat: float = HEARTBEAT_SECONDS,
    ) -> None:
        self.study, self.evaluator, self.measure, self.say = study, evaluator, measure, say
        self.poll, self.heartbeat = poll, heartbeat
        self._waiting_said = False
        self._failing: set[str] = set()
        """The candidates whose training failed here since the last that did not."""

    def run(self) -> int:
        """Work until no sweep is left; the number of candidates this worker finished."""
        finished = 0
        while True:
            self.study.give_up_dead_workers()
            decisions = self.study.ledger.read()
            pending = self._pending(decisions)
            if not pending:
                if not self._decide(decisions):
                    return finished
                continue
            self.study.queue(pending)
            claim = self.study.claim(pending)
            if claim is None:
                self._wait("the others to finish this sweep")
                continue
            self._waiting_said = False
            finished += self._evaluate(claim)

    def _pending(self, decisions: Decisions) -> list[Candidate]:
        """What the current sweep still needs. Earlier sweeps are finished, else it would not have been decided on."""
        if not decisions.sweeps:
            return []
        entries = self.study.entries()
        candidates = [proposal.candidate for proposal in decisions.sweeps[-1].proposals]
        return [c for c in candidates if c.key not in entries or not entries[c.key].finished]

    def _decide(self, decisions: Decisions) -> bool:
        """Record the next sweep; False if the study is finished."""
        settings = decisions.settings
        prices = Prices(settings.config, settings.input_size, dict(decisions.latencies), self.measure)
        measured = any(budget.cost == "latency_ms" for budgets in decisions.rounds for budget in budgets)
        due = len(decisions.sweeps) < 2 * len(decisions.rounds)
        if due and measured and self.measure is None:
            self._wait(f"a worker on the machine whose latency counts ({settings.machine})")
            return True
        accuracies = self.study.accuracies()
        sweep = next_sweep(settings.strategy, decisions.rounds, decisions.sweeps, accuracies, prices)
        if sweep is None:
            return False
        self.study.ledger.sweep(len(decisions.sweeps), sweep, prices.latencies)
        known = self.study.entries()
        fresh = sum(proposal.candidate.key not in known for proposal in sweep.proposals)
        if fresh:  # else another worker decided on it first, and said so
            self.say(f"round {sweep.round + 1}, {sweep.kind}: {fresh} new candidates around {sweep.origin}")
        return True

    def _evaluate(self, claim: Claim) -> int:
        start = time.perf_counter()

        def report(epoch: int, accuracy: float) -> None:
            try:
                if self.study.report(claim, epoch, accuracy):
                    raise Hopeless
            except UpdateFinishedTrialError as error:
                raise TakenUp from error

        with self._alive(claim):
            try:
                accuracy = self.evaluator(claim.candidate, report)
            except Hopeless:
                self.study.prune(claim, time.perf_counter() - start)
                self.say(f"{claim.candidate}: pruned after {time.perf_counter() - start:.0f} s")
                return 1
            except TakenUp:
                self.say(f"{claim.candidate}: left to another worker, which has taken it up")
                return 0
            except NonFiniteError as error:
                self.study.fail(claim, str(error))
                self.say(f"{claim.candidate}: cannot be trained: {error}")
                return 1
            except (*NOT_THE_CANDIDATES, Interrupted):
                self.study.release(claim)
                raise
            except Exception as error:
                self._attempt_failed(claim, error)
                return 0
        self._failing.clear()
        seconds = time.perf_counter() - start
        if not self.study.complete(claim, accuracy, seconds):
            self.say(f"{claim.candidate}: {accuracy:.2%}, but too late: another worker has taken it up")
            return 0
        self.say(f"{claim.candidate}: {accuracy:.2%} in {seconds:.0f} s")
        return 1

    def _attempt_failed(self, claim: Claim, error: Exception) -> None:
        """Go on with others; but where one candidate after the other fails, the fault is this worker's."""
        why = f"{type(error).__name__}: {error}"
        self.study.fail_attempt(claim, why)
        self.say(f"{claim.candidate}: this attempt failed: {why}")
        self._failing.add(claim.candidate.key)
        if len(self._failing) >= TOO_MANY:
            raise error

    @contextmanager
    def _alive(self, claim: Claim) -> Iterator[None]:
        """Signs of life while a candidate is evaluated."""
        done = threading.Event()

        def beat() -> None:
            while not done.wait(self.heartbeat):
                # One beat may be missed: the storage can be out of reach for a moment.
                with suppress(OptunaError, SQLAlchemyError):
                    self.study.storage.record_heartbeat(claim.trial_id)

        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def _wait(self, what: str) -> None:
        if not self._waiting_said:
            self.say(f"waiting for {what}")
            self._waiting_said = True
        time.sleep(self.poll)
