"""The classifiers of an ensemble's members as one: the mean of M linear maps is one of all their features.

(1 / M) sum_m (W_m f_m + b_m) = [W_1 .. W_M] / M [f_1; ..; f_M] + sum_m b_m / M.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from ebnet.packing.folding import array


def joined(classifiers: Sequence[nn.Linear]) -> dict[str, np.ndarray]:
    """The tensors of the op `classifier`."""
    weight = np.concatenate([array(one.weight) for one in classifiers], 1) / len(classifiers)
    return {"classifier.weight": weight, "classifier.bias": np.mean([array(one.bias) for one in classifiers], 0)}


def put(classifiers: Sequence[nn.Linear], weight: Tensor, bias: Tensor) -> None:
    """Give the members classifiers that join to these; the first gets all of the bias."""
    count = len(classifiers)
    with torch.no_grad():
        for number, (one, part) in enumerate(zip(classifiers, weight.chunk(count, 1), strict=True)):
            one.weight.copy_(count * part)
            one.bias.copy_(count * bias if number == 0 else torch.zeros_like(bias))
