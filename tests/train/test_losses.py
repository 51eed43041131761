"""Each term of the loss against numbers worked out by hand."""

from math import exp, log, sqrt

import pytest
import torch

from ebnet.errors import ShapeError
from ebnet.train.losses import attention_map, attention_transfer, logit_distillation, soft_cross_entropy


def test_soft_cross_entropy() -> None:
    logits = torch.tensor([[0.0, log(3.0)], [0.0, 0.0]])  # probabilities 1/4, 3/4 and 1/2, 1/2
    targets = torch.tensor([[0.25, 0.75], [1.0, 0.0]])
    expected = (-(0.25 * log(0.25) + 0.75 * log(0.75)) + log(2)) / 2
    assert soft_cross_entropy(logits, targets).item() == pytest.approx(expected, rel=1e-6)


def test_soft_cross_entropy_of_certain_targets_is_the_usual_one() -> None:
    logits, labels = torch.randn(8, 5), torch.randint(0, 5, (8,))
    expected = torch.nn.functional.cross_entropy(logits, labels)
    torch.testing.assert_close(soft_cross_entropy(logits, torch.nn.functional.one_hot(labels, 5).float()), expected)


def test_logit_distillation_is_the_softened_divergence_times_the_squared_temperature() -> None:
    teacher, student, temperature = torch.tensor([[2 * log(3.0), 0.0]]), torch.tensor([[0.0, 0.0]]), 2.0
    # Softened by 2, the teacher says 3/4, 1/4 and the student 1/2, 1/2.
    expected = 4 * (0.75 * log(0.75 / 0.5) + 0.25 * log(0.25 / 0.5))
    assert logit_distillation(student, teacher, temperature).item() == pytest.approx(expected, rel=1e-6)
    assert logit_distillation(teacher, teacher, temperature).item() == pytest.approx(0.0, abs=1e-7)


def test_logit_distillation_pulls_towards_the_teacher() -> None:
    student = torch.zeros(1, 2, requires_grad=True)
    logit_distillation(student, torch.tensor([[1.0, 0.0]]), 1.0).backward()
    share = exp(1) / (exp(1) + 1)
    assert student.grad is not None
    torch.testing.assert_close(student.grad, torch.tensor([[0.5 - share, share - 0.5]]))


def test_attention_map_is_the_normalised_channel_sum_of_squares() -> None:
    features = torch.tensor([[[[1.0, 0.0]], [[2.0, 3.0]]]])  # two channels on 1 x 2 places: sums 5 and 9
    length = sqrt(5**2 + 9**2)
    torch.testing.assert_close(attention_map(features), torch.tensor([[5 / length, 9 / length]]))


def test_attention_transfer_averages_squared_distances() -> None:
    left, right = torch.tensor([[[[1.0, 0.0]]]]), torch.tensor([[[[0.0, 1.0], [0.0, 0.0]]]])
    other_place = torch.tensor([[[[2.0, 0.0], [0.0, 0.0]]]])
    # Orthogonal unit vectors are sqrt(2) apart; equal maps are 0 apart: the mean of 2 and 0.
    assert attention_transfer([left, right], [left, other_place]).item() == pytest.approx(1.0)


def test_attention_of_different_widths_can_be_compared_but_not_of_different_sizes_or_depths() -> None:
    narrow, wide = torch.ones(1, 2, 3, 3), torch.ones(1, 8, 3, 3)
    assert attention_transfer([narrow], [wide]).item() == pytest.approx(0.0)
    with pytest.raises(ShapeError, match="differ in size"):
        attention_transfer([narrow], [torch.ones(1, 2, 4, 4)])
    with pytest.raises(ShapeError, match="1 feature maps cannot be compared with the teacher's 2"):
        attention_transfer([narrow], [narrow, narrow])
