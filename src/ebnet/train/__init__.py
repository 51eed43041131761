"""Training: the paper's staged policy as one restartable call.

import ebnet

result = ebnet.train.train("demo", "runs/demo")              # all stages, or what is left of them
result.stages["stage2"].top1, result.final

recipe = ebnet.train.load_recipe("fashion-mnist", {"stages": ["stage1-one-expert"], "schedule.epochs": 3})
ebnet.train.train(recipe, "runs/probe", on_epoch=lambda record: print(record["val"]["top1"]))
network = ebnet.train.load_stage("runs/probe", "stage1-one-expert")
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ebnet.train.evaluation import Evaluation as Evaluation
    from ebnet.train.evaluation import evaluate as evaluate
    from ebnet.train.pictures import Pictures as Pictures
    from ebnet.train.pipeline import train as train
    from ebnet.train.progress import Reporter as Reporter
    from ebnet.train.recipe import Recipe as Recipe
    from ebnet.train.recipe import load_recipe as load_recipe
    from ebnet.train.recipe import parse_recipe as parse_recipe
    from ebnet.train.recipe import recipe_names as recipe_names
    from ebnet.train.results import RunResult as RunResult
    from ebnet.train.results import StageResult as StageResult
    from ebnet.train.run_directory import RunDirectory as RunDirectory
    from ebnet.train.stages import load_stage as load_stage

_HOME = {
    "Evaluation": "evaluation",
    "evaluate": "evaluation",
    "Pictures": "pictures",
    "train": "pipeline",
    "Reporter": "progress",
    "Recipe": "recipe",
    "load_recipe": "recipe",
    "parse_recipe": "recipe",
    "recipe_names": "recipe",
    "RunResult": "results",
    "StageResult": "results",
    "RunDirectory": "run_directory",
    "load_stage": "stages",
}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    """The public names, each imported on first use: reading a recipe needs no torch."""
    if name in _HOME:
        return getattr(import_module(f"ebnet.train.{_HOME[name]}"), name)
    raise AttributeError(f"module 'ebnet.train' has no attribute {name!r}")
