"""Boosting over any network (for binary ones Zhu et al., CVPR 2019), by multi-class AdaBoost (SAMME, Zhu et al., 2009).

Members are trained one after another, each a run of the recipe from fresh weights with a seed of its own, on images
drawn with replacement by their weights w, equal ones at first. After each,

    err = sum of w over the images that it gets wrong,   alpha = ln((1 - err) / err) + ln(classes - 1),

w of those images is multiplied by e^alpha, and all w are divided by their sum. The ensemble's logits are the members',
weighted by alpha. A member that is no better than chance has no vote, and w begins anew. The authors train members
independently too for ImageNet; their variants of the weights' update are left out.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from ebnet.data import Dataset
from ebnet.data.resampled import resampled
from ebnet.errors import ConfigError
from ebnet.models.ensemble import joined
from ebnet.models.network import ExpertBinaryNetwork
from ebnet.models.pretrained import load_pretrained
from ebnet.recipe.settings import Overrides, Recipe
from ebnet.runs.final import FINAL, write_final
from ebnet.train.pictures import Pictures
from ebnet.train.pipeline import resolved, train
from ebnet.train.progress import Reporter

_BOOST = 0x626F6F7374  # "boost": keeps these draws apart from other uses of the same seed


class Round(NamedTuple):
    """What a member comes to: its vote, and the weights of the images for the next."""

    alpha: float
    weights: NDArray[np.float64]


def boost(
    recipe: Recipe | str | Path,
    out: str | Path,
    members: int,
    *,
    overrides: Overrides = (),
    data: str | Path | None = None,
    datasets: tuple[Dataset, Dataset] | None = None,
    reporter: Reporter | None = None,
) -> Path:
    """Train an ensemble in the directory `out`, a run for each member; where it already holds some of them, go on.

    Returns:
        The directory of the finished ensemble; `ebnet pack OUT` takes it.
    """
    recipe, out = resolved(recipe, overrides, data), Path(out)
    if recipe.stages[-1] != "stage2" or recipe.network.members > 1:
        raise ConfigError("boosting needs a recipe that ends with stage2, of a single network: network.members = 1")
    pictures = Pictures.open(recipe.data, datasets)
    weights = np.full(len(pictures.train), 1 / len(pictures.train))
    networks, votes = [], []
    for member in range(members):
        rows = np.random.default_rng([_BOOST, recipe.seed, member]).choice(len(weights), len(weights), p=weights)
        drawn = (resampled(pictures.train, rows), pictures.val)
        run = train(
            recipe.changed({"seed": recipe.seed + member}), out / f"member{member}", datasets=drawn, reporter=reporter
        )
        assert run.final is not None
        networks.append(load_pretrained(run.final))
        alpha, weights = next_round(weights, wrong(networks[-1], pictures), pictures.train.num_classes)
        votes.append(alpha)
    ensemble = joined(networks, votes if sum(votes) > 0 else None)
    write_final(out, ensemble, pictures.preprocessing(), list(pictures.val.classes))
    return out / FINAL


def next_round(weights: NDArray[np.float64], missed: NDArray[np.bool_], classes: int) -> Round:
    """SAMME's update. An error of 0 would vote infinitely: it counts as half an image."""
    err = max(float(weights[missed].sum()), 0.5 / len(weights))
    alpha = float(np.log((1 - err) / err) + np.log(classes - 1)) if err < 1 else 0.0
    if alpha <= 0:
        return Round(0.0, np.full(len(weights), 1 / len(weights)))
    weights = weights * np.exp(alpha * missed)
    return Round(alpha, weights / weights.sum())


@torch.no_grad()
def wrong(network: ExpertBinaryNetwork, pictures: Pictures) -> NDArray[np.bool_]:
    """Which training images a network gets wrong, as validation would show them."""
    shown = Pictures(pictures.train, pictures.train, pictures.settings, pictures.normalise).validation()
    missed = [network(pictures.normalise.tensor(images)).argmax(1) != labels for images, labels in shown.epoch(0)]
    return torch.cat(missed).numpy()
