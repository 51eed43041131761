"""The state of a phase of training: all of its checkpoint that is not tensors. The one place that knows its schema."""

from dataclasses import asdict, dataclass, field
from typing import Any, Self

from ebnet.models.config import NetworkConfig
from ebnet.recipe.phases import PhaseName
from ebnet.runs.results import PhaseResult


@dataclass
class Meter:
    """Sums over pictures, of any number of named quantities."""

    count: float = 0.0
    sums: dict[str, float] = field(default_factory=dict)

    def add(self, count: int, **means: float) -> None:
        """Take in the means of `count` pictures."""
        self.count += count
        for name, mean in means.items():
            self.sums[name] = self.sums.get(name, 0.0) + mean * count


@dataclass
class Position:
    """Where in a phase training stands, and what it has seen so far."""

    epoch: int = 0
    batch: int = 0
    step: int = 0
    meter: Meter = field(default_factory=Meter)
    """Of the epoch under way."""
    seconds: float = 0.0
    images: int = 0
    best_top1: float = -1.0
    best_epoch: int = -1
    metrics_position: int = 0
    result: PhaseResult | None = None
    """The phase's result, once it is finished."""

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        result = values["result"] and PhaseResult.from_dict(values["result"])
        return cls(**(values | {"meter": Meter(**values["meter"]), "result": result}))


@dataclass(frozen=True)
class PhaseState:
    """Which network of which phase the tensors beside it are, and how far its training had come."""

    phase: PhaseName
    network: NetworkConfig
    precision: str
    threads: int
    """That trained it: with another number of them the result is equal up to rounding only."""
    position: Position

    def to_dict(self) -> dict[str, Any]:
        return {
            "stage": self.phase,
            "network": self.network.to_dict(),
            "precision": self.precision,
            "threads": self.threads,
            "position": asdict(self.position),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        return cls(
            phase=values["stage"],
            network=NetworkConfig.from_dict(values["network"]),
            precision=values["precision"],
            threads=values["threads"],
            position=Position.from_dict(values["position"]),
        )
