"""The settings of a study: everything that decides which candidates it trains, and how."""

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Self

from ebnet.errors import ConfigError
from ebnet.models.config import NetworkConfig
from ebnet.recipe.settings import Recipe, parse_recipe
from ebnet.search.budget import Budget, Budgets
from ebnet.search.candidate import Candidate
from ebnet.search.directions import Strategy
from ebnet.search.reduced import reduced_recipe
from ebnet.search.space import DIRECTIONS, Direction, Space


@dataclass(frozen=True)
class Machine:
    """The machine that a study's latencies are measured on, and the base network's there."""

    cpu: str
    isa: str
    threads: int
    base_ms: float

    def __str__(self) -> str:
        return f"{self.cpu}, {self.isa} kernels, {self.threads} thread{'s' if self.threads > 1 else ''}"


@dataclass(frozen=True)
class Settings:
    """What `ebnet search` was asked for, with every choice made.

    Attributes:
        recipe: the user's whole recipe, as plain values; candidates get a reduced one.
        network: what all candidates share (the base network's configuration).
    """

    recipe: dict[str, Any]
    network: dict[str, Any]
    space: dict[str, Any]
    directions: tuple[Direction, ...]
    per_direction: int
    combinations: int
    rounds: int
    budgets: Budgets
    seed: int
    epochs: int
    threads: int
    prune: bool
    machine: Machine | None = None

    def __post_init__(self) -> None:
        for name in ("per_direction", "combinations", "rounds", "epochs", "threads"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}={getattr(self, name)}: expected at least 1")
        unknown = [direction for direction in self.directions if direction not in DIRECTIONS]
        if unknown or not self.directions or len(set(self.directions)) < len(self.directions):
            raise ConfigError(f"directions {', '.join(self.directions)}: expected some of {', '.join(DIRECTIONS)}")

    @cached_property
    def config(self) -> NetworkConfig:
        return NetworkConfig.from_dict(self.network)

    @cached_property
    def full(self) -> Recipe:
        return parse_recipe(self.recipe, "the study's recipe")

    @cached_property
    def strategy(self) -> Strategy:
        base, space = Candidate.of(self.config), Space.from_dict(self.space)
        return Strategy(base, space, self.directions, self.per_direction, self.combinations, self.seed)

    @property
    def input_size(self) -> int:
        return self.full.data.size

    def reduced(self, candidate: Candidate) -> Recipe:
        return reduced_recipe(self.full, candidate, self.epochs, self.threads, "experts" in self.directions)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        budgets = tuple(Budget(**budget) for budget in values["budgets"])
        machine = Machine(**values["machine"]) if values["machine"] else None
        directions = tuple(values["directions"])
        return cls(**(values | {"budgets": budgets, "machine": machine, "directions": directions}))
