"""Trained networks in the package: `zoo:NAME` stands for a packed file wherever one is wanted.

Each network is NAME.ebn and a model card, NAME.json: what it was trained on and how, what it reaches and what it costs.
"""

import json
import os
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from shlex import quote
from typing import Any, Self

from ebnet.errors import ConfigError

PREFIX = "zoo:"
HOME = Path(__file__).parent
SAMPLE = "digit.png"
"""A validation digit, for those who have no image at hand."""


@dataclass(frozen=True)
class Card:
    """What a reader should know before using a network. Accuracies are shares of 1."""

    name: str
    title: str
    data: dict[str, Any]
    """The data set as a recipe names it, so that it can be evaluated again."""
    pictures: int
    """Validation pictures that the accuracies are of."""
    licence: str
    """Of the data."""
    recipe: str
    settings: list[str]
    """What the training changed in the recipe, as `--set` takes it."""
    seed: int
    stages: dict[str, float]
    """Top-1 of the torch network at the end of every stage."""
    top1: float
    """Of the packed file in the engine."""
    arch: str
    experts: int
    bops: int
    flops: int
    bytes: int
    """Of the file."""
    seconds: int | None = None
    """That all phases of training took; None where it was not written down."""

    @classmethod
    def from_json(cls, text: str) -> Self:
        return cls(**json.loads(text))

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1) + "\n"

    @property
    def command(self) -> str:
        """What trains it again."""
        changes = "".join(f" --set {quote(setting)}" for setting in self.settings)
        return f"ebnet train {self.recipe} --set seed={self.seed}{changes}"


@cache
def cards() -> dict[str, Card]:
    """All cards by name."""
    found = (Card.from_json(path.read_text(encoding="utf-8")) for path in sorted(HOME.glob("*.json")))
    return {card.name: card for card in found}


def card(name: str) -> Card:
    """A network's card; an unknown name is answered with the nearest known."""
    known = cards()
    if name not in known:
        near = get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(known) or 'none'}"
        raise ConfigError(f"the zoo has no network called {name!r}; {hint}")
    return known[name]


def in_zoo(path: str | os.PathLike[str]) -> str | None:
    """NAME of `zoo:NAME`; None of a path."""
    text = os.fspath(path)
    return text.removeprefix(PREFIX) if text.startswith(PREFIX) else None


def resolve(path: str | os.PathLike[str]) -> str:
    """The file that `zoo:NAME` stands for; any other path as it is."""
    name = in_zoo(path)
    return os.fspath(path) if name is None else str(HOME / f"{card(name).name}.ebn")
