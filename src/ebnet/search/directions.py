"""The paper's search strategy (Section 4.3, "Network search strategy"), one sweep at a time.

"We gradually search in each direction separately while keeping all the others fixed. Then, we identify a set of
promising search directions which we then combine to train new candidates. We repeat this step one more time and, then,
from the final population of candidates we select the best models."

A round is two sweeps: *directions* tries moves from an origin along each direction, *combination* makes several
promising moves at once. The origin of the first round is the base network, of a later one the best network so far. A
sweep is a function of the recorded results alone, so it does not matter who computes it, nor when.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from math import log2
from random import Random
from typing import Any, Literal, Self

from ebnet.search.budget import Budgets, Prices, primary
from ebnet.search.candidate import Candidate
from ebnet.search.space import Direction, Move, Space

SWEEPS_OF_ROUND = 2


@dataclass(frozen=True)
class Strategy:
    """What the search is told.

    Attributes:
        base: the network it starts from.
        directions: the directions it tries.
        per_direction: new networks along each direction, in each round.
        combinations: new networks that combine directions, in each round.
    """

    base: Candidate
    space: Space
    directions: tuple[Direction, ...]
    per_direction: int
    combinations: int
    seed: int


@dataclass(frozen=True)
class Proposal:
    """A network to train, and the directions in which it differs from the origin of its sweep (none: it is it)."""

    candidate: Candidate
    directions: tuple[Direction, ...]


@dataclass(frozen=True)
class Sweep:
    """A set of networks that can be trained in any order; the next sweep needs the results of all of them."""

    round: int
    kind: Literal["directions", "combination"]
    origin: Candidate
    proposals: tuple[Proposal, ...]
    promising: tuple[Direction, ...] = ()
    """The directions that a combination takes its moves from."""

    def to_dict(self) -> dict[str, Any]:
        proposals = [{"key": p.candidate.key, "directions": list(p.directions)} for p in self.proposals]
        return asdict(self) | {"origin": self.origin.key, "proposals": proposals, "promising": list(self.promising)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        proposals = tuple(Proposal(Candidate.parse(p["key"]), tuple(p["directions"])) for p in values["proposals"])
        origin, promising = Candidate.parse(values["origin"]), tuple(values["promising"])
        return cls(values["round"], values["kind"], origin, proposals, promising)


def next_sweep(
    strategy: Strategy,
    rounds: Sequence[Budgets],
    sweeps: Sequence[Sweep],
    accuracies: Mapping[str, float],
    prices: Prices,
) -> Sweep | None:
    """The sweep that follows the finished `sweeps`; None when all rounds are done.

    Args:
        rounds: the budgets of each round.
        accuracies: by key, of every network that was trained to the end.
    """
    number = len(sweeps)
    if number == SWEEPS_OF_ROUND * len(rounds):
        return None
    budgets = rounds[number // SWEEPS_OF_ROUND]
    around = _Round(strategy, number // SWEEPS_OF_ROUND, budgets, accuracies, prices)
    return around.directions(sweeps) if number % SWEEPS_OF_ROUND == 0 else around.combination(sweeps[-1])


def best(accuracies: Mapping[str, float], budgets: Budgets, prices: Prices) -> Candidate | None:
    """The most accurate network within the budgets; of equally accurate ones the cheapest."""
    trained = [Candidate.parse(key) for key in sorted(accuracies)]
    fitting = [candidate for candidate in trained if prices.fits(candidate, budgets)]
    cost = primary(budgets)
    return min(fitting, key=lambda c: (-accuracies[c.key], prices.of(c, cost), c.key), default=None)


@dataclass(frozen=True)
class _Round:
    strategy: Strategy
    number: int
    budgets: Budgets
    accuracies: Mapping[str, float]
    prices: Prices

    def directions(self, sweeps: Sequence[Sweep]) -> Sweep:
        """New networks along each direction, and those trained before that also lie on one."""
        origin = (best(self.accuracies, self.budgets, self.prices) if sweeps else None) or self.strategy.base
        proposals = [Proposal(origin, ())] if self._fits(origin) else []
        for direction in self._worth_trying(sweeps):
            moves = self._targets(origin, direction)
            known = [target for _, target in moves if target.key in self.accuracies and self._fits(target)]
            fresh = [target for _, target in moves if target.key not in self.accuracies]
            taken = {proposal.candidate for proposal in proposals}
            chosen = self._spread(fresh, direction)
            proposals += [Proposal(target, (direction,)) for target in (*known, *chosen) if target not in taken]
        return Sweep(self.number, "directions", origin, tuple(proposals))

    def combination(self, searched: Sweep) -> Sweep:
        """The most promising moves of several directions made at once, best first by the sum of what each gained."""
        origin, gains = searched.origin, self._gains(searched)
        promising = self._promising(searched)
        everywhere = [proposal.candidate for proposal in searched.proposals if proposal.candidate.key in gains]
        options: dict[Direction, list[tuple[Move | None, float]]] = {}
        for direction in promising if len(promising) > 1 else self.strategy.directions:
            moves = self._targets(origin, direction)
            tried: list[tuple[Move | None, float]] = [(m, gains[t.key]) for m, t in moves if t.key in gains]
            tried = sorted(tried, key=lambda option: -option[1])[: 2 * self.strategy.per_direction]
            # A move that is too dear by itself may fit together with one that saves.
            dear = self._nearly_affordable([target for _, target in moves])
            slope = self._slope(origin, [t for _, t in moves if t.key in gains] or everywhere, gains)
            untried: list[tuple[Move | None, float]] = [
                (m, slope * self._doublings(origin, t)) for m, t in moves if t in dear
            ]
            options[direction] = [(None, 0.0), *tried, *untried]
        ranked: dict[Candidate, tuple[tuple[Any, ...], tuple[Direction, ...]]] = {}
        for moves_made, target in _combined(origin, options):
            if target in ranked or target.key in self.accuracies or not self.strategy.space.allows(target):
                continue
            made: tuple[Direction, ...] = tuple(direction for direction, _ in moves_made)
            rank = (-sum(gain for _, gain in moves_made), target.key)
            ranked[target] = rank, made
        proposals: list[Proposal] = []
        for target, (_, made) in sorted(ranked.items(), key=lambda item: item[1][0]):
            if len(proposals) == self.strategy.combinations:
                break
            if self._fits(target):
                proposals.append(Proposal(target, made))
        return Sweep(self.number, "combination", origin, tuple(proposals), promising)

    def _worth_trying(self, sweeps: Sequence[Sweep]) -> tuple[Direction, ...]:
        """In the first round all directions, later the promising ones of the round before (all, if none was)."""
        return (sweeps[-1].promising if sweeps else ()) or self.strategy.directions

    def _promising(self, searched: Sweep) -> tuple[Direction, ...]:
        """Directions with a network that is more accurate than the origin, or as accurate and cheaper.

        Also those in which all that was tried is cheaper and loses: there accuracy can be had for operations, so they
        either save for other directions or only lacked the budget to be followed upwards.
        """
        origin, gains = searched.origin, self._gains(searched)
        found = []
        for direction in self.strategy.directions:
            tried = [p.candidate for p in searched.proposals if direction in p.directions and p.candidate.key in gains]
            better = any(gains[c.key] > 0 or (gains[c.key] == 0 and self._cost(c) < self._cost(origin)) for c in tried)
            trades = bool(tried) and all(self._doublings(origin, c) < 0 for c in tried)
            if better or (trades and self._slope(origin, tried, gains) > 0):
                found.append(direction)
        return tuple(found)

    def _gains(self, searched: Sweep) -> dict[str, float]:
        """Accuracy gained over the origin; where the origin was not trained, over the middle of its neighbours."""
        found = {
            p.candidate.key: self.accuracies[p.candidate.key]
            for p in searched.proposals
            if p.candidate.key in self.accuracies
        }
        middle = sorted(found.values())[len(found) // 2] if found else 0.0
        reference = found.get(searched.origin.key, middle)
        return {key: accuracy - reference for key, accuracy in found.items()}

    def _slope(self, origin: Candidate, tried: Sequence[Candidate], gains: Mapping[str, float]) -> float:
        """Accuracy gained for each doubling of the operations, by least squares over what was tried."""
        doublings = [(self._doublings(origin, target), gains[target.key]) for target in tried]
        squares = sum(x * x for x, _ in doublings)
        return sum(x * gain for x, gain in doublings) / squares if squares else 0.0

    def _doublings(self, origin: Candidate, target: Candidate) -> float:
        return log2(self.prices.counted(target)["bops"] / self.prices.counted(origin)["bops"])

    def _targets(self, origin: Candidate, direction: Direction) -> list[tuple[Move, Candidate]]:
        moves = self.strategy.space.moves(origin, direction)
        return [(move, target) for move in moves if (target := move.apply(origin)) is not None]

    def _spread(self, targets: Sequence[Candidate], direction: Direction) -> list[Candidate]:
        """New networks along one direction: the dearest within the budgets, the others spread over what is cheaper.

        The paper asks for "optimal directions for scaling-up", so each direction is followed as far as the budgets
        go; the rest of the constellation is drawn one from each of equal parts of the cost order.
        """
        random = Random(f"{self.strategy.seed}/{self.number}/{direction}")
        admitted = sorted((target for target in targets if self._counted_fit(target)), key=str)
        shuffled = random.sample(admitted, len(admitted))
        in_order = sorted(shuffled, key=lambda target: -self.prices.counted(target)["bops"])
        drawn, count = self._first_fitting(in_order), self.strategy.per_direction - 1
        rest = [target for target in in_order if target not in drawn]
        for part in range(count):
            members = rest[len(rest) * part // count : len(rest) * (part + 1) // count]
            drawn += self._first_fitting(random.sample(members, len(members)))
        return drawn

    def _first_fitting(self, targets: Sequence[Candidate]) -> list[Candidate]:
        """The first that fits, or none. Steps double, because a latency has to be measured for each one looked at."""
        place, step = 0, 1
        while place < len(targets):
            if self._fits(targets[place]):
                return [targets[place]]
            place, step = place + step, 2 * step
        return []

    def _nearly_affordable(self, targets: Sequence[Candidate]) -> list[Candidate]:
        """The cheapest of the networks outside the budgets."""
        dear = [target for target in targets if not self._counted_fit(target)]
        dear.sort(key=lambda target: (self.prices.counted(target)["bops"], target.key))
        return dear[: self.strategy.per_direction]

    def _cost(self, candidate: Candidate) -> float:
        return self.prices.of(candidate, primary(self.budgets))

    def _fits(self, candidate: Candidate) -> bool:
        return self.prices.fits(candidate, self.budgets)

    def _counted_fit(self, candidate: Candidate) -> bool:
        counted = tuple(budget for budget in self.budgets if budget.cost != "latency_ms")
        return self.prices.fits(candidate, counted)


def _combined(
    origin: Candidate, options: Mapping[Direction, Sequence[tuple[Move | None, float]]]
) -> Iterator[tuple[list[tuple[Direction, float]], Candidate]]:
    """Every network that differs from the origin in at least two directions, with what each was seen to gain."""
    for chosen in product(*options.values()):
        target: Candidate | None = origin
        made: list[tuple[Direction, float]] = []
        for direction, (move, gain) in zip(options, chosen, strict=True):
            if move is not None and target is not None:
                target = move.apply(target)
                made.append((direction, gain))
        if len(made) > 1 and target is not None and target != origin:
            yield made, target
