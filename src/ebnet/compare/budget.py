"""Equal budgets: each method gets the widest network that costs no more than the recipe's own.

Stem and stages grow together, by one channel of the stem at a time, so that every method keeps the structure's
proportions. What costs more per channel gets fewer of them. Costs are counted here; `ebnet.compare.times` measures.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, get_args

from ebnet.arch import STEM_WIDTH, Arch
from ebnet.compare.contestants import Contestant
from ebnet.cost.profile import Profile, profile
from ebnet.errors import ArchError, ConfigError
from ebnet.models.config import STEM_MULTIPLES, NetworkConfig
from ebnet.models.genotype import STAGES, CellArch, parse_arch
from ebnet.recipe.settings import Recipe

Equal = Literal["ops", "bytes", "milliseconds", "structure"]
EQUALS: tuple[Equal, ...] = get_args(Equal)
"""ops: BOPs / 64 + FLOPs of one image. bytes: with fp16 reals. milliseconds: of one image in the engine, one thread,
here. structure: no budget, the recipe's structure for all."""

WIDEST = 4
"""Times the recipe's own first stage: a method that costs so little is stopped there."""
CLASSES, CHANNELS = 10, 3
"""What networks are counted with: data is not opened to count."""
STEM_OF_CELLS = 3
"""Channels of the stem for one of a node of the first cells, as BNAS has it for small pictures."""
NO_STRUCTURE = "cells are a structure of their own, and equal structure is the recipe's for all; choose another budget"


def checked(name: str) -> Equal:
    """What is to be equal, by its name."""
    for equal in EQUALS:
        if name == equal:
            return equal
    raise ConfigError(f"equal={name!r}: expected one of {', '.join(EQUALS)}")


@dataclass(frozen=True)
class Fitted:
    """A contestant's network in a recipe."""

    settings: dict[str, Any]
    """Changes to the recipe's network."""
    counted: Profile
    milliseconds: float | None = None
    """Of one image in the engine, where it was measured."""


def fitted(recipe: Recipe, contestant: Contestant, equal: Equal) -> Fitted:
    """The widest network of a contestant within a budget that is counted."""
    if equal == "structure":
        if contestant.genotype is not None:
            raise ConfigError(f"{contestant}: {NO_STRUCTURE}")
        return counted(recipe, contestant.settings)
    limit = _cost(own(recipe), equal)
    best = None
    for shape in shapes(recipe, contestant):
        candidate = counted(recipe, contestant.settings | shape)
        if _cost(candidate, equal) > limit:
            break
        best = candidate
    if best is None:
        raise ConfigError(
            f"{contestant}: even the narrowest costs more {equal} than the {limit:,.0f} of {recipe.network.arch}; "
            "take a wider recipe"
        )
    return best


def own(recipe: Recipe) -> Fitted:
    """The recipe's own network, which is the budget."""
    return counted(recipe, {"experts": 1})


def shapes(recipe: Recipe, contestant: Contestant) -> Iterator[dict[str, Any]]:
    """The structure from narrow to wide; what no network can have is left out.

    Blocks, groups and proportions stay as the recipe has them. A network of cells has as many cells as the recipe has
    blocks.
    """
    arch = parse_arch(recipe.network.arch)
    if isinstance(arch, CellArch):
        raise ConfigError(f"{arch}: the network of a comparison's recipe has blocks, from which each method's is made")
    widths = range(1, WIDEST * arch.widths[0] + 1)
    made = _of_blocks(arch, widths)
    if contestant.genotype is not None:
        made = _of_cells(contestant.genotype, max(STAGES, sum(arch.blocks)), widths)
    multiple = STEM_MULTIPLES.get(recipe.network.stem, 1)
    return (shape for shape in made if shape["stem_width"] % multiple == 0)


def _of_blocks(arch: Arch, widths: range) -> Iterator[dict[str, Any]]:
    for width in widths:
        factor = Fraction(width, STEM_WIDTH) / arch.expansion[0]
        try:
            wider = Arch(arch.blocks, tuple(factor * expansion for expansion in arch.expansion), arch.groups)
        except ArchError:
            continue
        yield {"arch": str(wider), "stem_width": width}


def _of_cells(genotype: str, cells: int, widths: range) -> Iterator[dict[str, Any]]:
    for width in widths:
        yield {"arch": str(CellArch(genotype, cells, width)), "stem_width": STEM_OF_CELLS * width}


def counted(recipe: Recipe, settings: dict[str, Any]) -> Fitted:
    """The recipe's network with some settings changed, and its costs."""
    network = recipe.network.config(CLASSES, CHANNELS, 1).to_dict() | settings
    return Fitted(settings, profile(NetworkConfig.from_dict(network), recipe.data.size))


def _cost(network: Fitted, equal: Equal) -> float:
    return network.counted.ops if equal == "ops" else float(network.counted.bytes_fp16)
