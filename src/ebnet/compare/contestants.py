"""Who takes part: the methods of the paper's comparison as changes to one recipe's network, with experts or without."""

from dataclasses import dataclass
from typing import Any, Self

from ebnet.errors import ConfigError
from ebnet.models.methods import METHODS, RESNET18

SETTINGS = ("weights", "activations", "unit", "scaling")
"""What makes a method; the structure, stem and shortcuts are the recipe's."""

METHOD_SETTINGS: dict[str, dict[str, Any]] = {"sbaseline": {}} | {
    method.name: {name: method.settings[name] for name in SETTINGS if name in method.settings}
    for method in METHODS
    if method.settings["arch"] == RESNET18["arch"]
}
"""By name; `sbaseline` is the paper's own unit with one expert."""

TRAINING = {method.name: method.training for method in METHODS}
"""What a method changes of the recipe beside the network."""

PREPARED = (
    "bnn",
    "xnor-net",
    "xnor-net-pp",
    "ccnn",
    "abc-net-1",
    "abc-net-5",
    "bi-real",
    "rethinking-bnn",
    "ir-net",
    "reactnet-18",
    "sbaseline",
    "real-to-bin",
    "hwgq",
)
"""The comparison that docs/comparison.md is about: the one-bit rows, and one with activations of two bits."""


@dataclass(frozen=True)
class Contestant:
    """A method with some experts."""

    method: str
    experts: int = 1

    @classmethod
    def parse(cls, text: str) -> Self:
        """`reactnet-18`, or `reactnet-18:4` for four experts."""
        name, colon, count = text.partition(":")
        if name not in METHOD_SETTINGS:
            raise ConfigError(f"no method is called {name!r}; those are {', '.join(METHOD_SETTINGS)}")
        if colon and not (count.isdecimal() and int(count) >= 1):
            raise ConfigError(f"{text!r}: expected METHOD or METHOD:EXPERTS, for example {name}:4")
        return cls(name, int(count) if colon else 1)

    @property
    def settings(self) -> dict[str, Any]:
        """Changes to a recipe's network."""
        neutral = {"weights": "learned-scale", "activations": "sign", "unit": "real-to-binary", "scaling": False}
        return neutral | METHOD_SETTINGS[self.method] | {"experts": self.experts}

    @property
    def training(self) -> dict[str, Any]:
        """Changes to the rest of it."""
        return TRAINING.get(self.method, {})

    def __str__(self) -> str:
        return self.method if self.experts == 1 else f"{self.method}:{self.experts}"
