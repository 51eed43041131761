"""Warm-up and milestones, step by step."""

import math

import pytest

from ebnet.recipe.settings import Schedule
from ebnet.train.schedule import LearningRate


def test_warm_up_rises_linearly_to_the_base_rate() -> None:
    rate = LearningRate(1.0, steps_per_epoch=4, warmup_epochs=2)
    assert [rate(step) for step in range(10)] == [0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0, 1.0, 1.0]


def test_milestones_divide_by_ten_from_their_epoch_on() -> None:
    rate = LearningRate(1e-3, steps_per_epoch=100, warmup_epochs=10, milestones=(40, 55, 65))
    expected = {0: 1e-6, 499: 5e-4, 999: 1e-3, 3999: 1e-3, 4000: 1e-4, 5499: 1e-4, 5500: 1e-5, 6500: 1e-6, 7499: 1e-6}
    assert {step: rate(step) for step in expected} == pytest.approx(expected)


def test_a_fractional_warm_up_never_exceeds_the_base_rate() -> None:
    rate = LearningRate(1.0, steps_per_epoch=3, warmup_epochs=0.5)
    assert [rate(step) for step in range(3)] == pytest.approx([2 / 3, 1.0, 1.0])


def test_a_cosine_falls_from_the_warm_up_to_zero() -> None:
    rate = LearningRate(2.0, steps_per_epoch=10, warmup_epochs=1, cosine=5)
    assert [rate(step) for step in (0, 4, 9, 10)] == pytest.approx([0.2, 1.0, 2.0, 2.0])
    assert [rate(step) for step in (20, 30, 40)] == pytest.approx([1 + 0.5**0.5, 1.0, 1 - 0.5**0.5])
    assert rate(49) == pytest.approx(2.0 * (1 - math.cos(math.pi / 40)) / 2)
    assert rate(50) == rate(60) == 0.0


def test_the_rate_of_a_stage_of_a_recipe() -> None:
    cosine = LearningRate.of(Schedule(epochs=4, batch_size=8, learning_rate=0.5, decay="cosine"), 10)
    assert cosine(0) == 0.5
    assert cosine(20) == pytest.approx(0.25)
    stepped = LearningRate.of(Schedule(epochs=4, batch_size=8, learning_rate=0.5, milestones=(2,), decay=0.5), 10)
    assert [stepped(step) for step in (19, 20)] == [0.5, 0.25]
    with pytest.raises(ValueError, match="cosine"):
        Schedule(epochs=4, batch_size=8, milestones=(2,), decay="cosine")
