"""Training: the paper's staged policy as one restartable call.

import ebnet

result = ebnet.train.train("demo", "runs/demo")              # all phases, or what is left of them
result.phases["stage2"].top1, result.final

recipe = ebnet.train.load_recipe("fashion-mnist", {"stages": ["stage1-one-expert"], "schedule.epochs": 3})
ebnet.train.train(recipe, "runs/probe", on_epoch=lambda record: print(record["val"]["top1"]))
network = ebnet.train.load_phase("runs/probe", "stage1-one-expert")
"""

from typing import TYPE_CHECKING

from ebnet.lazy import on_first_use

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

__all__, __getattr__ = on_first_use(
    __name__,
    {
        "ebnet.train.evaluation": ("Evaluation", "evaluate"),
        "ebnet.train.pictures": ("Pictures",),
        "ebnet.train.pipeline": ("train",),
        "ebnet.train.progress": ("Reporter",),
        "ebnet.recipe.settings": ("Recipe", "load_recipe", "parse_recipe"),
        "ebnet.recipe.library": ("recipe_names",),
        "ebnet.runs.results": ("PhaseResult", "RunResult"),
        "ebnet.runs.directory": ("RunDirectory", "load_phase"),
    },
)
