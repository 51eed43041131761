"""Recipes: what a run is to do, as validated settings. Nothing here needs torch.

import ebnet

recipe = ebnet.recipe.load_recipe("fashion-mnist", {"stages": ["stage1-one-expert"], "schedule.epochs": 3})
print(recipe.to_toml())
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ebnet.recipe.library import recipe_names as recipe_names
    from ebnet.recipe.phases import PHASE_NAMES as PHASE_NAMES
    from ebnet.recipe.phases import PhaseName as PhaseName
    from ebnet.recipe.settings import Recipe as Recipe
    from ebnet.recipe.settings import load_recipe as load_recipe
    from ebnet.recipe.settings import parse_recipe as parse_recipe

_HOME = {
    "PHASE_NAMES": "phases",
    "PhaseName": "phases",
    "Recipe": "settings",
    "load_recipe": "settings",
    "parse_recipe": "settings",
    "recipe_names": "library",
}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    """The public names, each imported on first use: the names of recipes need no pydantic."""
    if name in _HOME:
        return getattr(import_module(f"ebnet.recipe.{_HOME[name]}"), name)
    raise AttributeError(f"module 'ebnet.recipe' has no attribute {name!r}")
