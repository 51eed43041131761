"""Bop against its algorithm written out by hand, and in a training that is interrupted."""

import pytest
import torch
from torch import nn

from ebnet.errors import ConfigError
from ebnet.recipe import load_recipe
from ebnet.train import bop
from ebnet.train.adam import Adam


def test_flips_are_those_of_the_algorithm() -> None:
    generator = torch.Generator().manual_seed(0)
    weight = nn.Parameter(torch.randn(40, generator=generator))
    other = nn.Parameter(torch.zeros(3))
    bop.begin([weight])
    assert set(weight.tolist()) == {-1.0, 1.0}
    optimizer = Adam([weight, other], 1e-2)
    by_hand, average, flipped = weight.tolist(), [0.0] * 40, 0
    for step in range(20):
        gradient = 1e-3 * torch.randn(40, generator=generator)
        gradient[:5] = 0.0  # an average of zero is no reason
        share = 1 - step / 20
        weight.grad, other.grad = gradient.clone(), torch.ones(3)
        bop.flip(optimizer, [weight], share)
        optimizer.step()
        gamma = 1e-4 * share
        for i, g in enumerate(gradient.tolist()):
            average[i] = (1 - gamma) * average[i] + gamma * g
            if abs(average[i]) >= 1e-8 and (average[i] > 0) == (by_hand[i] > 0):
                by_hand[i] = -by_hand[i]
                flipped += 1
        assert weight.tolist() == by_hand
    assert flipped > 20
    assert weight.tolist()[:5] == by_hand[:5]
    assert other.tolist() == pytest.approx([-0.2] * 3, rel=1e-3)  # Adam went on with the others


@pytest.mark.parametrize(
    "change", [{"network.weights": "magnitude"}, {"network.weights": "sign", "network.experts": 2}]
)
def test_only_plain_signs(change: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"optimizer = .bop. trains plain signs"):
        load_recipe("comparison", {"network.weights": "sign", "optimizer": "bop"} | change)
