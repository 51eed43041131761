"""Who takes part: the methods of the paper's comparison as changes to one recipe's network, with experts or without."""

import re
from dataclasses import dataclass
from typing import Any, Self

from ebnet.errors import ConfigError
from ebnet.models.config import NetworkConfig
from ebnet.models.methods import METHODS, RESNET18

GENOTYPES = {"bnas-f": "bnas"}
"""Of methods whose structure is their own, the cells. BNAS-G and BNAS-H have the same; a budget decides how wide."""

METHOD_SETTINGS: dict[str, dict[str, Any]] = {"sbaseline": {}} | {
    method.name: {name: value for name, value in method.settings.items() if name not in (*RESNET18, "stem_width")}
    for method in METHODS
    if method.settings["arch"] == RESNET18["arch"] or method.name in GENOTYPES
}
"""By name; the structure, stem and shortcuts are the recipe's. `sbaseline` is the paper's own unit with one expert."""

NEUTRAL = {name: getattr(NetworkConfig, name) for settings in METHOD_SETTINGS.values() for name in settings}
"""What a method leaves as the paper has it, whatever the recipe says."""

TRAINING = {method.name: method.training for method in METHODS}
"""What a method changes of the recipe beside the network."""

BITS = {method.name: method.bits for method in METHODS}
"""Of weights and activations; `sbaseline` has one bit of each."""

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
    on_top: bool = False
    """The experts are put into the network that the method has alone, and the gates' operations come on top."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """`reactnet-18`; `reactnet-18:4` has four experts within the budget, `reactnet-18+4` on top of its network."""
        name, mark, count = re.fullmatch(r"([^:+]*)([:+]?)(.*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
        if name not in METHOD_SETTINGS:
            raise ConfigError(f"no method is called {name!r}; those are {', '.join(METHOD_SETTINGS)}")
        if mark and not (count.isdecimal() and int(count) >= 1):
            raise ConfigError(f"{text!r}: expected METHOD, METHOD:EXPERTS or METHOD+EXPERTS, for example {name}:4")
        made = cls(name, int(count) if mark else 1, mark == "+")
        if made.experts > 1 and not made.takes_experts:
            raise ConfigError(f"{text!r}: {name} trains plain signs with Bop, which takes one expert")
        return made

    @property
    def priced(self) -> "Contestant":
        """Whose network has to fit the budget."""
        return Contestant(self.method) if self.on_top else self

    @property
    def settings(self) -> dict[str, Any]:
        """Changes to a recipe's network."""
        return NEUTRAL | METHOD_SETTINGS[self.method] | {"experts": self.experts}

    @property
    def genotype(self) -> str | None:
        """Of its cells, where it is a network of cells."""
        return GENOTYPES.get(self.method)

    @property
    def training(self) -> dict[str, Any]:
        """Changes to the rest of it."""
        return TRAINING.get(self.method, {})

    @property
    def takes_experts(self) -> bool:
        """Bop trains plain signs of one expert."""
        return self.training.get("optimizer") != "bop"

    @property
    def one_bit(self) -> bool:
        """Weights and activations both: a binary network, which the engine runs."""
        return "1/1" in BITS.get(self.method, "1/1")

    def __str__(self) -> str:
        return self.method if self.experts == 1 else f"{self.method}{'+' if self.on_top else ':'}{self.experts}"
