"""Recipes: what a run is to do, as validated settings. Nothing here needs torch.

import ebnet

recipe = ebnet.recipe.load_recipe("fashion-mnist", {"stages": ["stage1-one-expert"], "schedule.epochs": 3})
print(recipe.to_toml())
"""

from typing import TYPE_CHECKING

from ebnet.lazy import on_first_use

if TYPE_CHECKING:
    from ebnet.recipe.library import recipe_names as recipe_names
    from ebnet.recipe.phases import PHASE_NAMES as PHASE_NAMES
    from ebnet.recipe.phases import PhaseName as PhaseName
    from ebnet.recipe.settings import Recipe as Recipe
    from ebnet.recipe.settings import load_recipe as load_recipe
    from ebnet.recipe.settings import parse_recipe as parse_recipe

__all__, __getattr__ = on_first_use(
    __name__,
    {
        "ebnet.recipe.phases": ("PHASE_NAMES", "PhaseName"),
        "ebnet.recipe.settings": ("Recipe", "load_recipe", "parse_recipe"),
        "ebnet.recipe.library": ("recipe_names",),
    },
)
