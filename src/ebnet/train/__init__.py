"""Training: the paper's staged policy as one restartable call.

import ebnet

result = ebnet.train.train("demo", "runs/demo")              # all phases, or what is left of them
result.phases["stage2"].top1, result.final

recipe = ebnet.train.load_recipe("fashion-mnist", {"stages": ["stage1-one-expert"], "schedule.epochs": 3})
ebnet.train.train(recipe, "runs/probe", on_epoch=lambda record: print(record["val"]["top1"]))
network = ebnet.train.load_phase("runs/probe", "stage1-one-expert")
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ebnet.recipe.library import recipe_names as recipe_names
    from ebnet.recipe.settings import Recipe as Recipe
    from ebnet.recipe.settings import load_recipe as load_recipe
    from ebnet.recipe.settings import parse_recipe as parse_recipe
    from ebnet.runs.directory import RunDirectory as RunDirectory
    from ebnet.runs.directory import load_phase as load_phase
    from ebnet.runs.results import PhaseResult as PhaseResult
    from ebnet.runs.results import RunResult as RunResult
    from ebnet.train.evaluation import Evaluation as Evaluation
    from ebnet.train.evaluation import evaluate as evaluate
    from ebnet.train.pictures import Pictures as Pictures
    from ebnet.train.pipeline import train as train
    from ebnet.train.progress import Reporter as Reporter

_HOME = {
    "Evaluation": "train.evaluation",
    "evaluate": "train.evaluation",
    "Pictures": "train.pictures",
    "train": "train.pipeline",
    "Reporter": "train.progress",
    "Recipe": "recipe.settings",
    "load_recipe": "recipe.settings",
    "parse_recipe": "recipe.settings",
    "recipe_names": "recipe.library",
    "PhaseResult": "runs.results",
    "RunResult": "runs.results",
    "RunDirectory": "runs.directory",
    "load_phase": "runs.directory",
}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    """The public names, each imported on first use: reading a recipe needs no torch."""
    if name in _HOME:
        return getattr(import_module(f"ebnet.{_HOME[name]}"), name)
    raise AttributeError(f"module 'ebnet.train' has no attribute {name!r}")
