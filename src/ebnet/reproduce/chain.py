"""A run as a chain of phases, each known by everything that makes it what it is.

Runs of different variants and claims often begin alike: four and eight experts start from the same single one. A
phase's key is a digest of the settings that it and the phases before it depend on, so equal beginnings are one piece
of work, trained once.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from ebnet.models.genotype import parse_arch
from ebnet.recipe.binding import binding
from ebnet.recipe.settings import Compute, Network, PhaseName, Recipe, Routing
from ebnet.runs.directory import RunDirectory
from ebnet.train.phases import PHASES, material


@dataclass(frozen=True)
class Link:
    """One phase to train, after others."""

    key: str
    phase: PhaseName
    recipe: Recipe
    """Of the phases up to this one."""
    before: tuple["Link", ...]

    def directory(self, work: Path) -> Path:
        return work / self.key

    def trained(self, work: Path) -> bool:
        """Whether its network lies there; records travel without."""
        phase = RunDirectory(self.directory(work)).phase(self.phase)
        state = phase.state() if phase.last.exists() else None
        return state is not None and state.position.result is not None

    def training(self, work: Path) -> Recipe:
        """The recipe that trains this phase alone and takes the ones before it from where they were trained."""
        taken = {
            f"stage.{link.phase}.checkpoint": str(RunDirectory(link.directory(work)).phase(link.phase).path)
            for link in self.before
        }
        return self.recipe.changed(taken)


def chain(recipe: Recipe) -> tuple[Link, ...]:
    """The phases of a recipe in order."""
    links: tuple[Link, ...] = ()
    for count in range(1, len(recipe.stages) + 1):
        part = _up_to(recipe, recipe.stages[:count])
        links += (Link(_key(part), recipe.stages[count - 1], part, links),)
    return links


def links_of(recipes: Iterable[Recipe]) -> list[Link]:
    """The phases of all recipes, each once, in the recipes' order."""
    found: dict[str, Link] = {}
    for recipe in recipes:
        for link in chain(recipe):
            found.setdefault(link.key, link)
    return list(found.values())


def links_before(links: Iterable[Link]) -> list[Link]:
    """What they follow, each once."""
    return list({before.key: before for link in links for before in link.before}.values())


def _key(recipe: Recipe) -> str:
    """Of what the recipe trains, not of how: the settings of `[compute]` change no more than the rounding.

    Defaults are left out, so that a setting that recipes may gain later does not orphan what was measured before.
    """
    how = recipe.compute if recipe.compute.mixed_precision else Compute()
    text = binding(recipe.model_copy(update={"compute": how}), exclude_defaults=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _up_to(recipe: Recipe, stages: tuple[PhaseName, ...]) -> Recipe:
    """The recipe of the first phases, without the settings that only later ones depend on."""
    schedules = {name: recipe.settings(name).model_dump() for name in stages}
    tables = {name: recipe.table(name).model_copy(update=schedule) for name, schedule in schedules.items()}
    changes = {"stages": stages, "stage": tables, "schedule": recipe.settings(stages[0])}
    network = _network(recipe, stages[-1])
    # One expert is not routed: it is the same, whatever is done to several after it.
    routing = recipe.routing if network.experts > 1 else Routing()
    # Only binary weights are trained by another optimizer.
    optimizer = recipe.optimizer if PHASES[stages[-1]].precision.binary_weights else "adam"
    return recipe.model_copy(update=changes | {"network": network, "routing": routing, "optimizer": optimizer})


def _network(recipe: Recipe, last: PhaseName) -> Network:
    """The network's settings as far as the last phase depends on them; classes and channels come from the data."""
    phase = PHASES[last]
    config = material(
        replace(phase.config(recipe, 1, 1), arch=parse_arch(recipe.network.arch)), phase.precision
    ).to_dict()
    return Network(**{name: config[name] for name in Network.model_fields})
