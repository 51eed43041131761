"""The reduced schedule: how a recipe is shortened to evaluate a candidate, and how the winner gets the full one.

"The accuracy of Stage I models are very representative to that of the final fully binary model" (Section 3): a
candidate is trained with binary activations and real weights only, for fewer epochs, without a teacher.
"""

from typing import Any

from ebnet.arch import Arch
from ebnet.recipe.settings import Recipe, parse_recipe
from ebnet.search.candidate import Candidate

FRACTION = 5
"""Candidates get a fifth of the recipe's epochs unless told otherwise."""


def reduced_epochs(recipe: Recipe) -> int:
    return max(1, recipe.settings("stage1-one-expert").epochs // FRACTION)


def reduced_recipe(recipe: Recipe, candidate: Candidate, epochs: int, threads: int, experts: bool = False) -> Recipe:
    """Stage I of `candidate`, the schedule's warm-up and milestones moved with its length.

    One expert is trained, which is enough to compare structures; with `experts` all of a candidate's are.
    """
    values = _with_network(recipe, candidate)
    stages = ["stage1-one-expert"] + (["stage1-experts"] if experts and candidate.experts > 1 else [])
    values["stages"] = stages
    values["compute"]["threads"] = threads
    values["stage"] = {}
    for name in stages:
        settings = recipe.settings(name).model_dump()  # type: ignore[arg-type]
        ratio = epochs / settings["epochs"]
        settings["warmup_epochs"] *= ratio
        settings["milestones"] = [milestone * ratio for milestone in settings["milestones"]]
        values["stage"][name] = settings | {"epochs": epochs}
    return parse_recipe(values, f"the reduced recipe of {candidate}")


def full_recipe(recipe: Recipe, candidate: Candidate, name: str) -> Recipe:
    """The user's whole recipe for the network that was found."""
    values = _with_network(recipe, candidate) | {"name": name, "description": f"{candidate}, found by search"}
    for table in values.get("stage", {}).values():
        table.pop("checkpoint", None)
    teacher = values.get("stage", {}).get("teacher", {}).get("arch")
    if teacher and Arch.parse(teacher).blocks != candidate.arch.blocks:
        # Attention maps after each block have no counterpart in a teacher of other blocks.
        values["distillation"]["attention_after"] = "stage"
    return parse_recipe(values, f"the recipe of {candidate}")


def _with_network(recipe: Recipe, candidate: Candidate) -> dict[str, Any]:
    values = recipe.model_dump(mode="json", exclude_none=True)
    values["network"] |= {
        "arch": str(candidate.arch),
        "aggregation": candidate.aggregation,
        "experts": candidate.experts,
    }
    return values
