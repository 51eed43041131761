"""What is to be trained: some claims, some seeds, and where everything lies."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from ebnet.reproduce.chain import Link, chain
from ebnet.reproduce.claim import load_claim


@dataclass(frozen=True)
class Order:
    claims: tuple[str, ...]
    seeds: int | None
    """How many; None leaves it to each claim."""
    work: Path
    """Where networks are trained: one directory a phase."""
    results: Path
    """Where the records are written."""
    data: Path | None = None
    overrides: tuple[str, ...] = ()

    def links(self) -> list[Link]:
        """All phases, each once, claim by claim and seed by seed, so that stopping early leaves whole seeds."""
        found: dict[str, Link] = {}
        for name in self.claims:
            claim = load_claim(name)
            for seed in range(claim.first_seed, claim.first_seed + (self.seeds or claim.seeds)):
                for variant in claim.variants:
                    for link in chain(claim.recipe_of(variant, seed, self.overrides)):
                        found.setdefault(link.key, link)
        return list(found.values())

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
        )
