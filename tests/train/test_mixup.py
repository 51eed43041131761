"""Mixup: hand-computed mixtures, and weights that are a function of (seed, stage, step)."""

import numpy as np
import torch

from ebnet.train.mixup import mix, mixup_weight


def test_neighbours_are_mixed_pictures_and_labels_alike() -> None:
    images = torch.tensor([0.0, 10.0, 20.0, 40.0, 7.0]).view(5, 1, 1, 1)
    mixed, targets = mix(images, torch.tensor([0, 1, 2, 2, 1]), 3, 0.75)
    assert mixed.flatten().tolist() == [2.5, 7.5, 25.0, 35.0, 7.0]
    expected = [[0.75, 0.25, 0], [0.25, 0.75, 0], [0, 0, 1], [0, 0, 1], [0, 1, 0]]
    torch.testing.assert_close(targets, torch.tensor(expected))


def test_without_mixup_nothing_changes() -> None:
    images = torch.randn(3, 1, 2, 2)
    mixed, targets = mix(images, torch.tensor([0, 1, 1]), 2, mixup_weight(0.0, 1, 2, 3))
    assert mixed is images
    assert targets.tolist() == [[1, 0], [0, 1], [0, 1]]


def test_splitting_a_batch_does_not_change_the_pairs() -> None:
    images, labels = torch.randn(8, 1, 2, 2), torch.arange(8)
    whole = mix(images, labels, 8, 0.3)
    halves = [mix(images[part], labels[part], 8, 0.3) for part in (slice(0, 4), slice(4, 8))]
    for kind in (0, 1):
        assert torch.equal(whole[kind], torch.cat([half[kind] for half in halves]))


def test_weights_repeat_for_the_same_step_and_follow_the_beta_distribution() -> None:
    weights = np.array([mixup_weight(0.2, 5, 1, step) for step in range(4000)])
    assert weights[7] == mixup_weight(0.2, 5, 1, 7)
    assert len({mixup_weight(0.2, *key) for key in ((5, 1, 7), (6, 1, 7), (5, 2, 7), (5, 1, 8))}) == 4
    # Beta(a, a) has mean 1/2 and variance 1 / (4 (2a + 1)) = 0.1786 for a = 0.2.
    assert abs(weights.mean() - 0.5) < 0.02
    assert abs(weights.var() - 0.1786) < 0.01
