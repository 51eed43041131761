"""Everybody in turn, on the same cores."""

import statistics
from contextlib import ExitStack
from dataclasses import dataclass, field

from rich.console import Console

from cpu import pinned, undisturbed
from peers import Peer
from peers.process import Contestant, NotAvailable


@dataclass
class Outcome:
    """What became of a peer: the seconds of its turns, or why there are none."""

    peer: Peer
    batch: int
    version: str = ""
    seconds: list[float] = field(default_factory=list)
    reason: str | None = None

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def minimum(self) -> float:
        return min(self.seconds)


def take_turns(
    entries: list[tuple[Peer, int]], images: int, rounds: int, warm_up: int, threads: int, real_time: bool = False
) -> list[Outcome]:
    """Of each peer and batch; a turn is `images` pictures in batches, and the rounds to warm up do not count."""
    outcomes = [Outcome(peer, batch) for peer, batch in entries]
    contestants: dict[int, Contestant] = {}
    with ExitStack() as stack:
        stack.enter_context(pinned(threads))
        status = stack.enter_context(Console(stderr=True).status(""))
        for number, outcome in enumerate(outcomes):
            status.update(f"building {outcome.peer.label}, batch {outcome.batch}")
            try:
                contestants[number] = Contestant(outcome.peer, outcome.batch, threads)
                outcome.version = contestants[number].version
                stack.callback(contestants[number].close)
            except NotAvailable as problem:
                outcome.reason = str(problem)
        status.update("taking turns")
        if real_time:
            stack.enter_context(undisturbed([contestant.process.pid for contestant in contestants.values()]))
        for number_of_round in range(warm_up + rounds):
            for number, contestant in list(contestants.items()):
                outcome = outcomes[number]
                try:
                    seconds = contestant.run(images // outcome.batch)
                except NotAvailable as problem:
                    outcome.reason = str(problem)
                    del contestants[number]
                    continue
                if number_of_round >= warm_up:
                    outcome.seconds.append(seconds)
    return outcomes
