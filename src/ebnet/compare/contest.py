"""What is to be trained for a comparison: contestants, seeds, one recipe and one budget, and where everything lies."""

import json
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar, Self

from ebnet.compare.budget import Equal, Fitted, fitted
from ebnet.compare.contestants import Contestant
from ebnet.recipe.settings import Recipe, load_recipe
from ebnet.reproduce.chain import Link, links_of


@dataclass(frozen=True)
class Contest:
    """Runs are known by what they train, as those of `ebnet reproduce`: shared beginnings are trained once."""

    worker: ClassVar[str] = "ebnet.compare.worker"

    methods: tuple[str, ...]
    recipe: str
    equal: Equal
    seeds: int
    work: Path
    results: Path
    data: Path | None = None
    overrides: tuple[str, ...] = ()

    @property
    def contestants(self) -> list[Contestant]:
        return [Contestant.parse(name) for name in dict.fromkeys(self.methods)]

    @property
    def base(self) -> Recipe:
        return load_recipe(self.recipe).changed(self.overrides)

    def network(self, contestant: Contestant) -> Fitted:
        return _fitted(self.recipe, self.overrides, contestant, self.equal)

    def recipe_of(self, contestant: Contestant, seed: int) -> Recipe:
        settings = self.network(contestant).settings
        network = {f"network.{name}": value for name, value in settings.items()}
        return self.base.changed(network | contestant.training | {"seed": seed})

    def links(self) -> list[Link]:
        """All phases, each once, seed by seed, so that stopping early leaves whole seeds."""
        pairs = ((seed, contestant) for seed in range(self.seeds) for contestant in self.contestants)
        return links_of(self.recipe_of(contestant, seed) for seed, contestant in pairs)

    def to_json(self) -> str:
        return json.dumps(asdict(self), default=str)

    @classmethod
    def from_json(cls, text: str) -> Self:
        values = json.loads(text)
        paths = {name: Path(values[name]) for name in ("work", "results", "data") if values[name] is not None}
        lists = {name: tuple(values[name]) for name in ("methods", "overrides")}
        return cls(**(values | paths | lists))


@cache
def _fitted(recipe: str, overrides: tuple[str, ...], contestant: Contestant, equal: Equal) -> Fitted:
    return fitted(load_recipe(recipe).changed(overrides), contestant, equal)
