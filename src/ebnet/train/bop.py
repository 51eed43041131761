"""Bop, an optimizer for weights that are binary and nothing else (Rethinking BNN Optimization, Helwegen et al., 2019).

Latent real weights are not weights, the paper argues, but inertia. Bop keeps that alone: a moving average of a weight's
gradient, m = (1 - gamma) m + gamma g, and flips the weight where the average is clear and against it (algorithm 1):

    w = -w  where abs(m) >= tau and sign(m) = sign(w)

The other parameters stay Adam's. gamma falls with the learning rate, as the paper lets it.
"""

import torch
from torch import nn

from ebnet.nn.sign import hard_sign

GAMMA, TAU = 1e-4, 1e-8
"""Adaptivity and threshold of the paper's ImageNet networks."""
AVERAGE = "flip_average"
"""Its name in the optimizer's state, with which it is kept and restored."""


@torch.no_grad()
def begin(weights: list[nn.Parameter]) -> None:
    """Weights become -1 and +1; those that are already stay."""
    for weight in weights:
        weight.copy_(hard_sign(weight))


@torch.no_grad()
def flip(optimizer: torch.optim.Optimizer, weights: list[nn.Parameter], share: float) -> None:
    """One step. Takes the gradients away, so that the optimizer leaves these weights alone.

    Args:
        share: the learning rate as a share of its highest, which gamma falls with.
    """
    for weight in weights:
        if weight.grad is None:
            continue
        state = optimizer.state[weight]
        if AVERAGE not in state:
            state[AVERAGE] = torch.zeros_like(weight)
        average = state[AVERAGE].lerp_(weight.grad, GAMMA * share)
        against = (average.abs() >= TAU) & (torch.sign(average) == torch.sign(weight))
        weight.copy_(torch.where(against, -weight, weight))
        weight.grad = None
