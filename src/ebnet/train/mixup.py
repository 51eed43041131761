"""Mixup (Zhang et al. 2017): training on convex combinations of two pictures and of their labels."""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

_MIXUP = 0x6D69787570  # "mixup": keeps these draws apart from other uses of the same seed


def mixup_weight(alpha: float, seed: int, phase: int, step: int) -> float:
    """lambda ~ Beta(alpha, alpha) of one step, a function of its arguments alone."""
    if alpha == 0:
        return 1.0
    return float(np.random.default_rng([_MIXUP, seed, phase, step]).beta(alpha, alpha))


def mix(images: Tensor, labels: Tensor, num_classes: int, weight: float) -> tuple[Tensor, Tensor]:
    """Each picture mixed with its neighbour: 0 with 1, 2 with 3, ...; returns pictures and target probabilities.

    A batch is already in random order, so neighbours are random partners, and unlike a drawn permutation the pairs stay
    the same when the batch is split over processes. The last of an odd batch stays as it is.
    """
    targets = F.one_hot(labels, num_classes).to(images.dtype)
    if weight == 1.0:
        return images, targets
    return mixed(images, weight), mixed(targets, weight)


def mixed(rows: Tensor, weight: float) -> Tensor:
    """Each row mixed with its neighbour's."""
    index = torch.arange(len(rows), device=rows.device)
    partner = torch.where((index ^ 1) < len(rows), index ^ 1, index)
    return torch.lerp(rows[partner], rows, weight)
