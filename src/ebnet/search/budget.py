"""Budgets: what a candidate may cost at most, and what it does cost."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Literal, Self, get_args

from ebnet.cost import profile
from ebnet.errors import ConfigError
from ebnet.models.config import NetworkConfig
from ebnet.search.candidate import Candidate

Cost = Literal["bops", "flops", "bytes", "latency_ms"]
COSTS: tuple[Cost, ...] = get_args(Cost)
COUNTED: tuple[Cost, ...] = ("bops", "flops", "bytes")
"""Costs that follow from the structure; the latency has to be measured."""

TITLES: dict[Cost, str] = {"bops": "BOPs", "flops": "FLOPs", "bytes": "bytes", "latency_ms": "latency"}


@dataclass(frozen=True)
class Budget:
    """A limit, e.g. ``bops=1.7e9``.

    ``bops``: binary operations of one picture. ``flops``: real operations, elementwise ones included, as the paper
    counts. ``bytes``: size with 32-bit reals. ``latency_ms``: one picture, measured with the engine on this CPU.
    """

    cost: Cost
    limit: float

    @classmethod
    def parse(cls, text: str) -> Self:
        name, equals, number = (part.strip() for part in text.partition("="))
        if not equals or name not in COSTS:
            raise ConfigError(f"--budget {text}: expected one of {', '.join(f'{cost}=NUMBER' for cost in COSTS)}")
        try:
            limit = float(number)
        except ValueError as error:
            raise ConfigError(f"--budget {text}: {number!r} is not a number; write for example {name}=1.7e9") from error
        if not isfinite(limit) or limit <= 0:
            raise ConfigError(f"--budget {text}: the limit must be a positive number")
        return cls(name, limit)

    def __str__(self) -> str:
        return f"{self.cost}={self.limit:.6g}"


Budgets = tuple[Budget, ...]


def parse_budgets(texts: Sequence[str]) -> Budgets:
    budgets = tuple(Budget.parse(text) for text in texts)
    if len({budget.cost for budget in budgets}) < len(budgets):
        raise ConfigError(f"--budget {' --budget '.join(texts)}: give each cost one limit")
    return budgets


def primary(budgets: Budgets) -> Cost:
    """The cost that accuracy is set against: the first that is limited, else BOPs as in the paper."""
    return budgets[0].cost if budgets else "bops"


Measure = Callable[[Candidate], float]


@dataclass
class Prices:
    """What candidates cost: counted, or looked up, or measured when first asked for.

    Attributes:
        network: what all candidates share: stem, shortcuts, classes.
        input_size: side of the picture.
        latencies: milliseconds by key, as recorded so far.
        measure: how to measure a latency that is not recorded; None where this machine must not.
    """

    network: NetworkConfig
    input_size: int
    latencies: dict[str, float] = field(default_factory=dict)
    measure: Measure | None = None
    _counted: dict[str, Mapping[Cost, float]] = field(default_factory=dict)

    def counted(self, candidate: Candidate) -> Mapping[Cost, float]:
        """The costs that follow from the structure."""
        if candidate.key not in self._counted:
            counts = profile(candidate.config(self.network), self.input_size)
            self._counted[candidate.key] = {"bops": counts.bops, "flops": counts.flops, "bytes": counts.bytes_fp32}
        return self._counted[candidate.key]

    def of(self, candidate: Candidate, cost: Cost) -> float:
        """One cost; a latency is measured if it has not been yet."""
        if cost != "latency_ms":
            return self.counted(candidate)[cost]
        if candidate.key not in self.latencies:
            if self.measure is None:
                raise ConfigError(f"the latency of {candidate} is not known, and this machine is not to measure it")
            self.latencies[candidate.key] = self.measure(candidate)
        return self.latencies[candidate.key]

    def known(self, candidate: Candidate) -> dict[Cost, float]:
        """Every cost that is known without measuring."""
        latency = self.latencies.get(candidate.key)
        return dict(self.counted(candidate)) | ({} if latency is None else {"latency_ms": latency})

    def fits(self, candidate: Candidate, budgets: Budgets) -> bool:
        """Whether a candidate is within all budgets; nothing is measured for one that fails a counted budget."""
        in_order = sorted(budgets, key=lambda budget: budget.cost == "latency_ms")
        return all(self.of(candidate, budget.cost) <= budget.limit for budget in in_order)
