"""Bagging (for binary networks Zhu et al., CVPR 2019): each member of an ensemble learns from its own bootstrap sample.

A bootstrap sample draws as many images as there are, with replacement; of many images each is then in it k times with
probability e^-1 / k!. Here k is such a Poisson draw, a function of the run's seed, the member and the image alone: the
same in every epoch, phase, process and restart. A member's part of a batch is the batch's images, each k times; all
members take their step from one batch. They are not warm-started from one another: the authors' networks for ImageNet
are not either.
"""

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ebnet.data.randomness import uniforms

_BAGS = 0x62616773  # "bags": stands where the augmentation's draws have an epoch
_MOST = 16
_TIMES = np.cumsum([math.exp(-1) / math.factorial(k) for k in range(_MOST)])
LEAST = 2
"""Images that a batch norm needs; a member that would see fewer of a batch sees all of it."""


def bags(seed: int, members: int, indices: NDArray[np.int64]) -> list[Tensor]:
    """Which rows of a batch each member sees; `indices` are the images' in the data set."""
    times = np.searchsorted(_TIMES, uniforms(seed, _BAGS, indices, members), side="right")
    rows = [np.repeat(np.arange(len(indices)), times[:, member]) for member in range(members)]
    return [torch.from_numpy(own if len(own) >= LEAST else np.arange(len(indices))) for own in rows]
