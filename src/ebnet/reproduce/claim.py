"""A claim of the paper as a small declarative experiment: variants of one recipe, and who should beat whom."""

from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ebnet.errors import ConfigError
from ebnet.recipe.settings import Recipe, load_recipe
from ebnet.recipe.text import explain, read_toml

SEEDS = 3
"""Seeds that a verdict needs at least."""

Chapter = Literal["claims", "why", "second", "short", "pilots"]
CHAPTERS: tuple[Chapter, ...] = get_args(Chapter)
"""The claims where they can show; what holds experts and width back there; a second look at some, with more classes;
the first trials, on few images; and the trials that chose the set-ups."""

Way = Literal["as the paper compares", "at equal training", "with our routing"]
"""The paper's experts train one phase more than the network they are compared with, and by its own routing; at equal
training both have every phase; with our routing, both have every phase and the experts `[routing]`."""


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Comparison(_Table):
    """`better` should have a higher accuracy than `than`, the two of a seed paired; or, with `within`, an equal one."""

    better: str
    than: str
    measure: Literal["stage2", "stage1", "first-epoch", "training"] = "stage2"
    """Accuracy at the end of Stage II, of Stage I, of the first epoch of Stage II, or at the end on training images."""
    paper: Annotated[float, Field(gt=0)] | None = None
    """Points of top-1 that the paper gains on ImageNet."""
    within: Annotated[float, Field(gt=0)] | None = None
    """Points of top-1 by which two differ at most that the paper finds equal."""
    way: Way | None = None
    """How it is told, where a claim is told in several ways."""
    decides: bool = True
    """Whether the claim's verdict rests on it; the others are told beside."""

    @model_validator(mode="after")
    def _one_bar(self) -> Self:
        if (self.paper is None) == (self.within is None):
            raise ValueError("a comparison has either `paper`, a gain, or `within`, a tolerance")
        return self


class Prediction(_Table):
    """The networks' order by Stage I accuracy should be their order by Stage II accuracy."""

    networks: tuple[str, ...]


class Claim(_Table):
    """An experiment; `variants` are settings that differ from the recipe's."""

    number: int
    name: str
    title: str
    chapter: Chapter = "claims"
    seeds: Annotated[int, Field(ge=1)] = SEEDS
    """How many, unless told otherwise."""
    first_seed: Annotated[int, Field(ge=0)] = 0
    """The others follow; those that chose a set-up must not be among those that confirm it."""
    says: str
    """What the paper says, with its numbers."""
    setting: str = ""
    """What a reader must know about how it is tried here."""
    recipe: str = "evidence"
    settings: dict[str, Any] = {}
    """Changes to the recipe that all variants share."""
    variants: dict[str, dict[str, Any]]
    compare: tuple[Comparison, ...] = ()
    predict: Prediction | None = None

    @property
    def deciding(self) -> list[str]:
        """The variants that the verdict rests on."""
        named = {name for c in self.compare if c.decides for name in (c.better, c.than)}
        named |= set(self.predict.networks) if self.predict else set()
        return [variant for variant in self.variants if variant in named]

    def recipe_of(self, variant: str, seed: int, overrides: tuple[str, ...] = ()) -> Recipe:
        """The whole recipe of one run; `overrides` come last, for trying a claim at another scale."""
        changes = self.settings | self.variants[variant] | {"seed": seed}
        return load_recipe(self.recipe, changes).changed(overrides)


@cache
def _claims() -> dict[str, Claim]:
    found = []
    for chapter in CHAPTERS:
        for entry in (files("ebnet") / "reproduce" / chapter).iterdir():
            if entry.name.endswith(".toml"):
                values = read_toml(entry.read_text(encoding="utf-8"), entry.name) | {"chapter": chapter}
                found.append(parse_claim(values, entry.name))
    found.sort(key=lambda claim: (CHAPTERS.index(claim.chapter), claim.number))
    return {claim.name: claim for claim in found}


def parse_claim(values: dict[str, Any], source: str) -> Claim:
    """Validate; what a comparison names must be there, and every variant must be a valid recipe."""
    try:
        claim = Claim.model_validate(values)
    except ValidationError as error:
        raise ConfigError(f"{source}: {explain(error, Claim)}") from error
    named = {name for c in claim.compare for name in (c.better, c.than)}
    named |= set(claim.predict.networks) if claim.predict else set()
    unknown = sorted(named - set(claim.variants))
    if unknown:
        raise ConfigError(f"{source}: no variant is called {', '.join(unknown)}; it has {', '.join(claim.variants)}")
    for variant in claim.variants:
        claim.recipe_of(variant, 0)
    return claim


def claim_names(chapter: Chapter = "claims") -> list[str]:
    """The claims of a chapter, by their numbers."""
    return [name for name, claim in _claims().items() if claim.chapter == chapter]


def load_claim(name: str) -> Claim:
    """By name or, of the claims where they can show, by number."""
    claims = _claims()
    by_number = {str(claim.number): claim for claim in claims.values() if claim.chapter == "claims"}
    found = claims.get(name) or by_number.get(name)
    if found is None:
        listed = ", ".join(f"{claim.number} {claim.name}" for claim in by_number.values())
        others = ", ".join(claim.name for claim in claims.values() if claim not in by_number.values())
        raise ConfigError(f"no claim is called {name!r}; those are: {listed}; of other chapters: {others}")
    return found
