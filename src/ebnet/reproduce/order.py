"""What is to be trained: some claims, some seeds, and where everything lies."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar, Protocol, Self

from ebnet.reproduce.chain import Link, links_of
from ebnet.reproduce.claim import load_claim


class Work(Protocol):
    """Phases to train, and where: what workers and those who watch them know of an order."""

    @property
    def worker(self) -> str:
        """The module that a worker runs, with `to_json` as its argument."""

    @property
    def work(self) -> Path:
        """Where networks are trained: one directory a phase."""

    @property
    def results(self) -> Path:
        """Where the records are written."""

    @property
    def data(self) -> Path | None:
        """Where the data set lies."""

    def links(self) -> list[Link]:
        """All phases, each once."""

    def to_json(self) -> str:
        """The order as a worker reads it."""


@dataclass(frozen=True)
class Order:
    worker: ClassVar[str] = "ebnet.reproduce.worker"

    claims: tuple[str, ...]
    seeds: int | None
    """How many; None leaves it to each claim."""
    work: Path
    results: Path
    data: Path | None = None
    overrides: tuple[str, ...] = ()
    deciding: bool = False
    """Only the variants that verdicts rest on."""

    def links(self) -> list[Link]:
        """All phases, each once, claim by claim and seed by seed, so that stopping early leaves whole seeds."""
        return links_of(
            claim.recipe_of(variant, seed, self.overrides)
            for claim in map(load_claim, self.claims)
            for seed in range(claim.first_seed, claim.first_seed + (self.seeds or claim.seeds))
            for variant in (claim.deciding if self.deciding else claim.variants)
        )

    def to_json(self) -> str:
        return json.dumps(asdict(self), default=str)

    @classmethod
    def from_json(cls, text: str) -> Self:
        values = json.loads(text)
        data = values["data"]
        return cls(
            claims=tuple(values["claims"]),
            seeds=values["seeds"],
            work=Path(values["work"]),
            results=Path(values["results"]),
            data=None if data is None else Path(data),
            overrides=tuple(values["overrides"]),
            deciding=values["deciding"],
        )
