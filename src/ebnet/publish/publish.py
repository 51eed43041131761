"""A finished run as a network of the zoo: the packed file beside its card."""

from pathlib import Path
from typing import Any

from ebnet.cost import profile
from ebnet.errors import CheckpointError
from ebnet.files import write_atomically
from ebnet.packing.file import pack
from ebnet.packing.source import open_packable
from ebnet.publish.evaluate import evaluate_packed
from ebnet.recipe.binding import spread
from ebnet.recipe.settings import Recipe, load_recipe
from ebnet.runs.directory import RunDirectory
from ebnet.train.pictures import Pictures
from ebnet.zoo import HOME, Card

LICENCES = {
    "mnist5k": "MNIST: CC BY-SA 3.0 (LeCun, Cortes)",
    "fashion-mnist": "Fashion-MNIST: MIT (Zalando)",
    "imagenette": "Imagenette: ImageNet photographs, for non-commercial research; the list itself Apache 2.0 (fast.ai)",
}


def publish(run: str | Path, name: str, title: str, directory: Path = HOME) -> Card:
    """Pack a finished run with fp16 reals, evaluate the file in the engine, and write it and its card."""
    recipe, results = RunDirectory(run).recipe(), RunDirectory(run).finished()
    if "stage2" not in results:
        raise CheckpointError(f"{run} has not finished Stage II; the zoo takes only finished networks")
    packable, path = open_packable(run), directory / f"{name}.ebn"
    pack(packable.model, path, "fp16", packable.preprocessing, packable.labels)
    cost = profile(packable.model, recipe.data.size)
    data = recipe.data.model_copy(update={"root": None})
    card = Card(
        name=name,
        title=title,
        data=data.model_dump(mode="json", exclude_defaults=True),
        pictures=len(Pictures.open(recipe.data).val),
        licence=LICENCES.get(recipe.data.name, "that of the data set"),
        recipe=recipe.name,
        settings=_changes(recipe),
        seed=recipe.seed,
        stages={stage: result.top1 for stage, result in results.items()},
        top1=evaluate_packed(path, recipe.data).top1,
        arch=str(packable.model.config.arch),
        experts=packable.model.config.experts,
        bops=cost.bops,
        flops=cost.flops,
        bytes=path.stat().st_size,
        seconds=round(sum(result.seconds for result in results.values())),
    )
    write_atomically(directory / f"{name}.json", card.to_json().encode())
    return card


def _changes(recipe: Recipe) -> list[str]:
    """What the recipe has otherwise than the shipped one of its name, apart from where things lie."""
    shipped, ours = (_settings(r) for r in (load_recipe(recipe.name), recipe))
    hidden = ("seed", "data.root", *(f"stage.{stage}.checkpoint" for stage in recipe.stages))
    return [f"{key}={value}" for key, value in ours.items() if shipped.get(key) != value and key not in hidden]


def _settings(recipe: Recipe) -> dict[str, Any]:
    """All settings by dotted name; every stage with its whole schedule, wherever the recipe says it."""
    values = recipe.model_dump(mode="json", exclude_none=True, exclude={"schedule"})
    values["stage"] = {
        name: recipe.table(name).model_dump(mode="json", exclude_none=True)
        | recipe.settings(name).model_dump(mode="json")
        for name in recipe.stages
    }
    return spread(values)
