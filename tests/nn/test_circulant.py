"""Circulant filters against rotations written here a second time, in float64."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from ebnet.errors import ConfigError
from ebnet.nn import BinaryConv2d
from ebnet.nn.circulant import circulant

TURNED_45 = [4, 1, 2, 7, 5, 3, 8, 9, 6]
"""A kernel with the numbers 1 to 9, turned clockwise by 45 degrees on paper."""


def learned(orientations: int, rows: int = 3, sets: int = 2, side: int = 3) -> Tensor:
    generator = torch.Generator().manual_seed(orientations)
    return torch.randn((rows, sets * orientations, side, side), dtype=torch.float64, generator=generator)


def test_four_orientations_are_quarter_turns() -> None:
    w = learned(4)
    made = circulant(w, 4).numpy().reshape(3, 4, 2, 4, 3, 3)  # filter, turn; set, orientation
    for turn in range(4):
        for orientation in range(4):
            expected = np.rot90(w.numpy().reshape(3, 2, 4, 3, 3)[:, :, orientation], -turn, (2, 3))
            np.testing.assert_array_equal(made[:, turn, :, (orientation + turn) % 4], expected)


def test_eight_orientations_move_the_ring() -> None:
    w = torch.zeros(1, 8, 3, 3, dtype=torch.float64)
    w[0, 0] = torch.arange(1.0, 10.0).view(3, 3)
    made = circulant(w, 8)
    assert made[1, 1].flatten().tolist() == TURNED_45
    assert made[1, 0].abs().sum() == 0
    torch.testing.assert_close(made[2, 2], torch.rot90(w[0, 0], -1))
    assert made[4, 4].flatten().tolist() == [9, 8, 7, 6, 5, 4, 3, 2, 1]


def test_a_kernel_of_one_only_moves_orientations() -> None:
    made = circulant(torch.arange(4.0).view(1, 4, 1, 1), 4)
    assert made.flatten(1).tolist() == [[0, 1, 2, 3], [3, 0, 1, 2], [2, 3, 0, 1], [1, 2, 3, 0]]


@pytest.mark.parametrize("precision", ["binary_input", "binary"])
def test_a_turned_input_gives_a_turned_output(precision: str) -> None:
    """What the orientations are for; signs, scales of the layer and all."""
    torch.manual_seed(0)
    conv = BinaryConv2d(8, 12, 3, padding=1, weights="layer-mean", precision=precision, orientations=4).double()
    x = torch.randn(2, 8, 6, 6, dtype=torch.float64)
    turned = torch.rot90(x, -1, (2, 3)).unflatten(1, (2, 4)).roll(1, 2).flatten(1, 2)
    expected = torch.rot90(conv(x), -1, (2, 3)).unflatten(1, (3, 4)).roll(1, 2).flatten(1, 2)
    torch.testing.assert_close(conv(turned), expected)
    assert not torch.allclose(conv(x), expected)


def test_forward_and_gradient_are_an_ordinary_convolutions() -> None:
    torch.manual_seed(1)
    conv = BinaryConv2d(8, 8, 3, 2, 1, groups=2, weights="layer-mean", precision="binary", orientations=4).double()
    assert conv.weight.shape == (2, 4, 3, 3)
    x = torch.randn(2, 8, 7, 7, dtype=torch.float64)
    y = conv(x)
    w = conv.weight.detach().numpy().reshape(2, 1, 4, 3, 3)
    full = np.empty((2, 4, 1, 4, 3, 3))
    for turn in range(4):
        for orientation in range(4):
            full[:, turn, :, (orientation + turn) % 4] = np.rot90(w[:, :, orientation], -turn, (2, 3))
    alpha = np.abs(w).mean()
    weight = torch.from_numpy(alpha * np.where(full >= 0, 1.0, -1.0)).reshape(8, 4, 3, 3).requires_grad_()
    signs = torch.where(x >= 0, 1.0, -1.0).double()
    expected = F.conv2d(signs, weight, stride=2, padding=1, groups=2)
    torch.testing.assert_close(y, expected)
    came = torch.randn_like(y)
    y.backward(came)
    expected.backward(came)
    assert weight.grad is not None
    each = weight.grad.numpy().reshape(2, 4, 1, 4, 3, 3)
    # Circulant back propagation: every place's gradient, turned back and added up.
    back = sum(np.rot90(np.roll(each[:, turn], -turn, 2), turn, (3, 4)) for turn in range(4))
    assert conv.weight.grad is not None
    np.testing.assert_allclose(conv.weight.grad.numpy(), np.asarray(back).reshape(2, 4, 3, 3), rtol=1e-12)


def test_a_learned_scale_begins_at_the_size_of_its_filter() -> None:
    conv = BinaryConv2d(4, 8, 3, weights="learned-scale", orientations=4)
    conv.move_to(conv.precision.parse("binary"))
    sizes = conv.weight.detach().abs().mean((1, 2, 3))
    torch.testing.assert_close(conv.scale.detach(), sizes.repeat_interleave(4))


def test_what_cannot_be_turned() -> None:
    with pytest.raises(ConfigError, match="orientations=3: expected one of 1, 4, 8"):
        BinaryConv2d(12, 12, 3, orientations=3)
    with pytest.raises(ConfigError, match="4 orientations need a kernel of 1x1 or 3x3"):
        BinaryConv2d(8, 8, 5, orientations=4)
    with pytest.raises(ConfigError, match="8 orientations do not divide the 8 input and 16 output channels of 2"):
        BinaryConv2d(8, 16, 3, groups=2, orientations=8)
