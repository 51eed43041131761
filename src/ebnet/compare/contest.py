"""What is to be trained for a comparison: contestants, seeds, one recipe and one budget, and where everything lies."""

import json
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import ClassVar, Self

from ebnet.compare.budget import NO_STRUCTURE, Equal, Fitted, counted, fitted
from ebnet.compare.contestants import Contestant
from ebnet.compare.times import Times
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
    def named(self) -> list[Contestant]:
        """All that were asked for."""
        return [Contestant.parse(name) for name in dict.fromkeys(self.methods)]

    @property
    def contestants(self) -> list[Contestant]:
        """Those that take part."""
        return [one for one in self.named if str(one) not in self.left_out]

    @property
    def left_out(self) -> dict[str, str]:
        """The others, and why: what the engine does not run has no milliseconds, and cells no other structure."""
        if self.equal == "structure":
            return {str(one): NO_STRUCTURE for one in self.named if one.genotype is not None}
        if self.equal != "milliseconds":
            return {}
        reasons = {str(one): self.times.left_out(one.priced) for one in self.named}
        return {name: why for name, why in reasons.items() if why is not None}

    @cached_property
    def times(self) -> Times:
        return Times(self.base, self.results)

    def prepare(self) -> None:
        """Measure what is to be measured before anything is trained."""
        if self.equal == "milliseconds":
            self.times.measure([one.priced for one in self.named], self.work)

    @cached_property
    def base(self) -> Recipe:
        return load_recipe(self.recipe).changed(self.overrides)

    def network(self, contestant: Contestant) -> Fitted:
        if contestant.on_top:
            alone = self.network(contestant.priced)
            return counted(self.base, alone.settings | {"experts": contestant.experts})
        if self.equal == "milliseconds":
            return self.times.fitted(contestant)
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
