"""What a run comes to."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from ebnet.names import by_todays_name
from ebnet.recipe.phases import PhaseName


@dataclass(frozen=True)
class PhaseResult:
    """A finished phase: the network at its end on the validation pictures (shares of 1), and what it took."""

    name: PhaseName
    top1: float
    top5: float
    loss: float
    usage: dict[str, list[float]]
    best_top1: float
    best_epoch: int
    epochs: int
    steps: int
    seconds: float
    """Of training steps, validation and checkpoints left out; over all parts of an interrupted run."""
    images_per_second: float
    source: str | None = None
    """Where a network came from that was given instead of trained."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        return cls(**(values | {"usage": by_todays_name(values["usage"])}))


@dataclass(frozen=True)
class RunResult:
    """All phases of a run, by name and in order."""

    out: Path
    phases: dict[PhaseName, PhaseResult]
    final: Path | None
    """The directory of the finished Stage II network; None if the recipe stops before it."""

    @property
    def last(self) -> PhaseResult:
        """The result of the last phase that was run."""
        return list(self.phases.values())[-1]

    def to_dict(self) -> dict[str, Any]:
        return {
            "out": str(self.out),
            "final": str(self.final) if self.final else None,
            "stages": {name: phase.to_dict() for name, phase in self.phases.items()},
        }
