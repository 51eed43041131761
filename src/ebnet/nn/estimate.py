"""Straight-through estimation: the values of one function with the gradient of another."""

import torch
from torch import Tensor


def estimated(values: Tensor, soft: Tensor) -> Tensor:
    """Exactly `values`, with the gradients of both: of `soft` where `values` has steps, and of its smooth parameters.

    `soft - soft.detach()` is zero to the last bit, so nothing is rounded.
    """
    return values + (soft - soft.detach())


def rounded(x: Tensor) -> Tensor:
    """To the nearest whole number, with the gradient of the identity."""
    return estimated(torch.round(x).detach(), x)
