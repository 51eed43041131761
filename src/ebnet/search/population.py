"""What a study has found: its networks with accuracy and cost, the Pareto front, the winner, and what paid."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ebnet.search.budget import Budgets, Cost, Prices, primary
from ebnet.search.candidate import Candidate
from ebnet.search.directions import Sweep, best
from ebnet.search.ledger import Decisions
from ebnet.search.pareto import undominated
from ebnet.search.study import Entry, Study


@dataclass(frozen=True)
class Member:
    """A candidate of the study with its costs."""

    entry: Entry
    costs: Mapping[Cost, float]
    on_front: bool

    @property
    def candidate(self) -> Candidate:
        return self.entry.candidate

    @property
    def accuracy(self) -> float | None:
        return self.entry.accuracy if self.entry.state == "trained" else None

    def to_dict(self) -> dict[str, Any]:
        return {
            "candidate": self.candidate.key,
            "arch": str(self.candidate.arch),
            "aggregation": self.candidate.aggregation,
            "experts": self.candidate.experts,
            "state": self.entry.state,
            "accuracy": self.entry.accuracy,
            "on_front": self.on_front,
            **{str(cost): value for cost, value in self.costs.items()},
            "seconds": self.entry.seconds,
            "worker": self.entry.worker,
            "fault": self.entry.fault,
        }


@dataclass(frozen=True)
class Payoff:
    """What one direction gained in one round: its best network against the origin."""

    round: int
    direction: str
    origin: Candidate
    best: Candidate
    gain: float
    """Accuracy over the origin's."""
    cost_ratio: float
    """Primary cost over the origin's."""
    promising: bool


@dataclass(frozen=True)
class Population:
    """A study at one moment."""

    name: str
    decisions: Decisions
    members: tuple[Member, ...]
    winner: Member | None
    payoffs: tuple[Payoff, ...]

    @property
    def budgets(self) -> Budgets:
        return self.decisions.budgets

    @property
    def cost(self) -> Cost:
        """What accuracy is set against."""
        return primary(self.budgets)

    @property
    def finished(self) -> bool:
        states = {member.candidate: member.entry.finished for member in self.members}
        sweeps = self.decisions.sweeps
        return len(sweeps) == 2 * len(self.decisions.rounds) and all(
            states.get(proposal.candidate, False) for proposal in sweeps[-1].proposals
        )

    def member(self, candidate: Candidate) -> Member | None:
        return next((member for member in self.members if member.candidate == candidate), None)

    def count(self, state: str) -> int:
        return sum(member.entry.state == state for member in self.members)

    def to_dict(self) -> dict[str, Any]:
        settings = self.decisions.settings
        return {
            "study": self.name,
            "finished": self.finished,
            "budgets": [str(budget) for budget in self.budgets],
            "machine": None if settings.machine is None else str(settings.machine),
            "seed": settings.seed,
            "epochs": settings.epochs,
            "phases": [sweep.to_dict() for sweep in self.decisions.sweeps],
            "candidates": [member.to_dict() for member in self.members],
            "winner": None if self.winner is None else self.winner.to_dict(),
            "payoffs": [
                vars(payoff) | {"origin": payoff.origin.key, "best": payoff.best.key} for payoff in self.payoffs
            ],
        }


def population(study: Study) -> Population:
    """Read a study; running ones too."""
    decisions, entries = study.ledger.read(), study.entries()
    settings = decisions.settings
    prices = Prices(settings.config, settings.input_size, dict(decisions.latencies))
    cost = primary(decisions.budgets)
    trained = {key: e.accuracy for key, e in entries.items() if e.state == "trained" and e.accuracy is not None}
    points = {key: (accuracy, prices.of(entries[key].candidate, cost)) for key, accuracy in trained.items()}
    front = dict(zip(points, undominated(list(points.values())), strict=True))
    members = {
        key: Member(entry, prices.known(entry.candidate), front.get(key, False)) for key, entry in entries.items()
    }
    winner = best(trained, decisions.budgets, prices)
    payoffs = tuple(payoff for sweep in decisions.sweeps for payoff in _payoffs(sweep, decisions, trained, prices))
    found = members[winner.key] if winner else None
    return Population(study.name, decisions, tuple(members.values()), found, payoffs)


def _payoffs(sweep: Sweep, decisions: Decisions, trained: Mapping[str, float], prices: Prices) -> list[Payoff]:
    """Of each direction of a sweep, and of their combination; none where the origin itself was not trained."""
    origin, cost = sweep.origin, primary(decisions.rounds[sweep.round])
    if origin.key not in trained:
        return []
    followers = [p for p in decisions.sweeps if p.round == sweep.round and p.kind == "combination"]
    kept = set(followers[0].promising) if followers else set()
    constellations: dict[str, list[Candidate]] = {}
    for proposal in sweep.proposals:
        if proposal.directions and proposal.candidate.key in trained:
            name: str = proposal.directions[0] if len(proposal.directions) == 1 else "combination"
            constellations.setdefault(name, []).append(proposal.candidate)
    found = []
    for direction, candidates in constellations.items():
        top = min(candidates, key=lambda c: (-trained[c.key], prices.of(c, cost), c.key))
        ratio = prices.of(top, cost) / prices.of(origin, cost)
        gain = trained[top.key] - trained[origin.key]
        found.append(Payoff(sweep.round, direction, origin, top, gain, ratio, direction in kept))
    return found
