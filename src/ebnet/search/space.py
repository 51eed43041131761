"""The degrees of freedom of the search, and the moves along each of them.

Section 4.3: "a) rearranging the blocks, b) defining the depth of the model, c) defining the width at each stage, and
finally d) selecting the optimal number of groups per each stage". Aggregation over groups and the number of experts are
two further directions, searched when asked for.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, Literal, Self, get_args

from ebnet.arch import STAGES, Arch
from ebnet.errors import ArchError, ConfigError
from ebnet.search.candidate import Candidate

Direction = Literal["arrangement", "depth", "width", "groups", "aggregation", "experts"]
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)
PAPER_DIRECTIONS: tuple[Direction, ...] = ("arrangement", "depth", "width", "groups")

_ONES = (Fraction(1),) * STAGES


@dataclass(frozen=True)
class Move:
    """A step from any network along one direction, so that steps along several directions can be combined.

    Blocks are added to each stage, expansion and groups of each stage multiplied, the others set.
    """

    direction: Direction
    blocks: tuple[int, ...] = (0,) * STAGES
    expansion: tuple[Fraction, ...] = _ONES
    groups: tuple[Fraction, ...] = _ONES
    aggregation: bool | None = None
    experts: int | None = None

    def apply(self, origin: Candidate) -> Candidate | None:
        """The network one step away; None where there is none."""
        arch = origin.arch
        groups = [Fraction(g) * ratio for g, ratio in zip(arch.groups, self.groups, strict=True)]
        if any(g.denominator != 1 for g in groups):
            return None
        try:
            moved = Arch(
                tuple(n + more for n, more in zip(arch.blocks, self.blocks, strict=True)),
                tuple(e * ratio for e, ratio in zip(arch.expansion, self.expansion, strict=True)),
                tuple(int(g) for g in groups),
            )
        except ArchError:
            return None
        return Candidate(
            moved,
            origin.aggregation if self.aggregation is None else self.aggregation,
            self.experts or origin.experts,
        )


@dataclass(frozen=True)
class Space:
    """The values the search may use.

    Attributes:
        max_blocks: the most blocks of one stage.
        expansions: expansions a stage may have.
        groups: groups a stage may have.
        experts: numbers of experts.
        only: where given, nothing but these candidates (keys): a table of known results.
    """

    max_blocks: int = 8
    expansions: tuple[Fraction, ...] = (Fraction(1), Fraction(2), Fraction(4))
    groups: tuple[int, ...] = (1, 2, 4, 8, 16, 32)
    experts: tuple[int, ...] = (1, 4, 8)
    only: frozenset[str] | None = None

    def __post_init__(self) -> None:
        for name in ("expansions", "groups", "experts"):
            if not getattr(self, name) or min(getattr(self, name)) <= 0:
                raise ConfigError(f"{name}={list(map(str, getattr(self, name)))}: expected positive numbers")
        if self.max_blocks < 1:
            raise ConfigError(f"max_blocks={self.max_blocks}: every stage needs at least 1 block")

    @classmethod
    def around(cls, base: Candidate, **changes: Any) -> Self:
        """The usual space: half, the same and twice the width of the base, the paper's groups, up to 8 blocks."""
        widths = {e * k for e in base.arch.expansion for k in (Fraction(1, 2), Fraction(1), Fraction(2))}
        values: dict[str, Any] = {
            "max_blocks": max(8, *base.arch.blocks),
            "expansions": tuple(sorted(widths)),
            "groups": tuple(sorted({1, 2, 4, 8, 16, 32, *base.arch.groups})),
            "experts": tuple(sorted({1, 4, 8, base.experts})),
        }
        return cls(**(values | {name: value for name, value in changes.items() if value}))

    def allows(self, candidate: Candidate) -> bool:
        arch = candidate.arch
        return (
            max(arch.blocks) <= self.max_blocks
            and set(arch.expansion) <= set(self.expansions)
            and set(arch.groups) <= set(self.groups)
            and candidate.experts in self.experts
            and (self.only is None or candidate.key in self.only)
        )

    def moves(self, origin: Candidate, direction: Direction) -> list[Move]:
        """All moves from `origin` along one direction that stay in the space, each to another network."""
        makers = {
            "arrangement": self._arrangements,
            "depth": self._depths,
            "width": self._widths,
            "groups": self._groups,
            "aggregation": self._aggregations,
            "experts": self._experts,
        }
        found: dict[str, Move] = {}
        for move in makers[direction](origin):
            target = move.apply(origin)
            if target is not None and target != origin and self.allows(target):
                found.setdefault(target.key, move)
        return list(found.values())

    def _arrangements(self, origin: Candidate) -> Iterator[Move]:
        """As many blocks in all, otherwise distributed (Table "different block arrangements")."""
        blocks = origin.arch.blocks
        for counts in product(range(1, self.max_blocks + 1), repeat=STAGES - 1):
            last = sum(blocks) - sum(counts)
            if last >= 1:
                yield Move("arrangement", blocks=_difference((*counts, last), blocks))

    def _depths(self, origin: Candidate) -> Iterator[Move]:
        """Blocks added to, or taken from, one stage or two (the constellations of Fig. "Effect of depth")."""
        steps = range(1 - self.max_blocks, self.max_blocks)
        for first, second in product(range(STAGES), repeat=2):
            for more, further in product(steps, steps if first < second else (0,)):
                if first <= second and more * further >= 0:
                    added = [0] * STAGES
                    added[first] += more
                    added[second] += further
                    yield Move("depth", blocks=tuple(added))

    def _widths(self, origin: Candidate) -> Iterator[Move]:
        """One expansion for a run of neighbouring stages: one stage, some, or all.

        Each both with the groups as they are and with k^2 times as many, which keeps the binary operations as they are
        (Section 4.2: "group size G proportional to the width expansion, i.e. G = k^2").
        """
        runs = [range(start, end) for start in range(STAGES) for end in range(start + 1, STAGES + 1)]
        for run, to in product(runs, self.expansions):
            ratios = tuple(to / now if stage in run else Fraction(1) for stage, now in enumerate(origin.arch.expansion))
            yield Move("width", expansion=ratios)
            yield Move("width", expansion=ratios, groups=tuple(k**2 for k in ratios))

    def _groups(self, origin: Candidate) -> Iterator[Move]:
        """Groups of every stage, never fewer in a later stage than in an earlier one, as in the paper's networks."""
        for groups in product(self.groups, repeat=STAGES):
            if list(groups) == sorted(groups):
                ratios = (Fraction(to, now) for to, now in zip(groups, origin.arch.groups, strict=True))
                yield Move("groups", groups=tuple(ratios))

    def _aggregations(self, origin: Candidate) -> Iterator[Move]:
        yield Move("aggregation", aggregation=not origin.aggregation)

    def _experts(self, origin: Candidate) -> Iterator[Move]:
        for experts in self.experts:
            yield Move("experts", experts=experts)

    def to_dict(self) -> dict[str, Any]:
        return {
            "max_blocks": self.max_blocks,
            "expansions": [str(e) for e in self.expansions],
            "groups": list(self.groups),
            "experts": list(self.experts),
            "only": None if self.only is None else sorted(self.only),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        return cls(
            values["max_blocks"],
            tuple(Fraction(e) for e in values["expansions"]),
            tuple(values["groups"]),
            tuple(values["experts"]),
            None if values["only"] is None else frozenset(values["only"]),
        )


def _difference(after: tuple[int, ...], before: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(b - a for a, b in zip(before, after, strict=True))
