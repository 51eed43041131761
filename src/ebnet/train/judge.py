"""Judging a finished or running run from its directory alone, and a packed file in the engine."""

from difflib import get_close_matches
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

from ebnet.errors import ConfigError
from ebnet.runtime.engine import load
from ebnet.train.checkpoint import LAST
from ebnet.train.distributed import pick_device
from ebnet.train.evaluation import Evaluation, evaluate
from ebnet.train.metrics import Meter, top_k
from ebnet.train.pictures import Pictures
from ebnet.train.recipe import Data, Recipe, StageName
from ebnet.train.run_directory import RunDirectory
from ebnet.train.stages import load_stage


def judge_run(
    run: str | Path,
    stage: str | None = None,
    data: str | Path | None = None,
    best: bool = False,
    device: str = "auto",
) -> tuple[StageName, Evaluation]:
    """The stage's name and how good its network is on the validation pictures.

    Args:
        stage: by default the last one that has a checkpoint.
        data: where the data set lies now, if it has moved since the training.
        best: the best epoch's network instead of the last's.
    """
    directory = RunDirectory(run)
    recipe = directory.recipe()
    name = _stage(directory, recipe, stage)
    if data is not None:
        recipe = recipe.changed({"data.root": str(data)})
    network, pictures, place = load_stage(run, name, best), Pictures.open(recipe.data), pick_device(device)
    return name, evaluate(network.to(place), pictures.validation(), pictures.normalise, place)


def judge_packed(file: str | Path, data: Data) -> Evaluation:
    """How good a packed file is in the engine, on the validation pictures of a data set."""
    engine, pictures = load(file), Pictures.open(data)
    layers = [op["name"] for op in engine.program if op["op"] == "binary"]
    meter, chosen = Meter(sums={"top1": 0.0, "top5": 0.0, "loss": 0.0}), []
    for images, labels in pictures.validation().epoch(0):
        logits = torch.from_numpy(engine(images.numpy()))
        top1, top5 = top_k(logits, labels)
        meter.add(len(labels), top1=top1, top5=top5, loss=functional.cross_entropy(logits, labels).item())
        chosen.append(engine.experts(images.numpy()))
    experts = np.concatenate(chosen, axis=1)
    count = int(engine.network["experts"])
    shares = {name: np.bincount(row, minlength=count) / len(row) for name, row in zip(layers, experts, strict=True)}
    usage = {name: share.tolist() for name, share in shares.items() if count > 1}
    return Evaluation(**meter.averages(torch.device("cpu")), usage=usage)


def _stage(directory: RunDirectory, recipe: Recipe, wanted: str | None) -> StageName:
    have = [name for name in recipe.stages if (directory.stage(name) / LAST).exists()]
    if wanted is None and have:
        return have[-1]
    for name in have:
        if name == wanted:
            return name
    near = get_close_matches(wanted or "", have, n=1)
    hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(have) or 'no checkpoint yet'}"
    raise ConfigError(f"{directory.path} has no stage {wanted or 'to evaluate'}; {hint}")
