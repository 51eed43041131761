"""Circulant filters (CBCN, Liu et al., CVPR 2019): each learned filter serves in several orientations.

Channels come in sets of M, one for each orientation of a feature (M = 4 or 8). A learned filter [in / M, M, 3, 3] makes
the M filters of one output set: the k-th is the learned one turned clockwise by k 360 / M degrees, which moves the
eight outer taps along their ring (the paper's circulant transfer matrix), and what it reads of orientation i the turned
one reads of orientation i + k, as in the authors' code. So a turned input gives a turned output with its orientations
moved along (at M = 4; a turn by 45 degrees is exact on the ring alone). The convolution with the expanded filters is an
ordinary one, and the gradient of a learned weight is the sum over its M places (the paper's circulant back
propagation), which autograd gives.
"""

import torch
from torch import Tensor

RING = (0, 1, 2, 5, 8, 7, 6, 3)
"""The outer taps of a 3x3 kernel, clockwise from the upper left."""
ORIENTATIONS = (1, 4, 8)


def circulant(learned: Tensor, orientations: int) -> Tensor:
    """The filters of all output channels, [rows M, in, k, k], from the learned ones [rows, in, k, k]; k is 1 or 3.

    Channels of a set lie side by side, in the input as in the output.
    """
    rows, channels, height, width = learned.shape
    taps = learned.reshape(rows, channels // orientations, orientations, height * width)
    turned = [_turned(taps, k, orientations).reshape(learned.shape) for k in range(orientations)]
    return torch.stack(turned, 1).flatten(0, 1)


def _turned(taps: Tensor, k: int, orientations: int) -> Tensor:
    moved = taps.roll(k, 2)
    return moved if taps.shape[3] == 1 else moved[..., source_taps(8 * k // orientations)]


def source_taps(steps: int) -> list[int]:
    """Of a kernel turned by so many eighths: which tap of the learned one lies in each place."""
    places = list(range(9))
    for at, place in enumerate(RING):
        places[place] = RING[(at - steps) % 8]
    return places
