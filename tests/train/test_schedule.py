"""Warm-up and milestones, step by step."""

import pytest

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
