"""Every activation quantizer against its paper's formulas, written here a second time, in float64."""

from typing import get_args

import numpy as np
import pytest
import torch
from torch import Tensor

from ebnet.errors import ConfigError
from ebnet.models.config import Activations
from ebnet.nn.activations import ACTIVATIONS, ActivationQuantizer, activation_quantizer

CHANNELS = 3


def quantizer(name: str) -> ActivationQuantizer:
    return activation_quantizer(name, CHANNELS).double().eval()


def drawn() -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return 1.3 * torch.randn((2, CHANNELS, 5, 4), dtype=torch.float64, generator=generator)


def passed(made: ActivationQuantizer, x: Tensor) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    inputs = x.clone().requires_grad_()
    values = made(inputs)
    came = torch.randn(x.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    values.backward(came)
    assert inputs.grad is not None
    return values.detach().numpy(), came.numpy(), inputs.grad.numpy()


def signs(x: np.ndarray) -> np.ndarray:
    return np.where(x >= 0, 1.0, -1.0)


def test_names_are_the_recipes() -> None:
    assert tuple(ACTIVATIONS) == get_args(Activations)
    with pytest.raises(ConfigError, match=r"activations='clip': expected one of sign, sign-polynomial"):
        activation_quantizer("clip", 1)


ESTIMATORS = {
    "sign": lambda x: (np.abs(x) <= 1) * 1.0,
    "sign-polynomial": lambda x: np.maximum(2 - 2 * np.abs(x), 0),
    "sign-ede": lambda x: 1 - np.tanh(0.1 * x) ** 2,  # at the start t = 0.1 and k = 10
    "sign-long-tail": lambda x: np.select([np.abs(x) <= 0.4, np.abs(x) <= 1], [2 - 4 * np.abs(x), 0.4], 0),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_sign(name: str) -> None:
    x = drawn()
    values, came, went = passed(quantizer(name), x)
    np.testing.assert_array_equal(values, signs(x.numpy()))
    np.testing.assert_allclose(went, came * ESTIMATORS[name](x.numpy()), rtol=1e-12)


def test_shifted_sign() -> None:
    x, made = drawn(), quantizer("rsign")
    threshold = torch.tensor([0.3, -0.2, 0.0], dtype=torch.float64)
    (parameter,) = made.parameters()
    parameter.data.copy_(threshold)
    values, came, went = passed(made, x)
    shifted = x.numpy() - threshold.numpy()[:, None, None]
    np.testing.assert_array_equal(values, signs(shifted))
    slope = np.maximum(2 - 2 * np.abs(shifted), 0)
    np.testing.assert_allclose(went, came * slope, rtol=1e-12)
    assert parameter.grad is not None
    np.testing.assert_allclose(parameter.grad.numpy(), -(came * slope).sum((0, 2, 3)), rtol=1e-10)


def test_half_wave() -> None:
    x = drawn()
    values, came, went = passed(quantizer("hwgq"), x)
    array, levels = x.numpy(), 0.538 * np.array([1, 2, 3])
    nearest = levels[np.abs(array[..., None] - levels).argmin(-1)]
    np.testing.assert_allclose(values, np.where(array > 0, nearest, 0), rtol=1e-12)
    np.testing.assert_allclose(went, came * ((array > 0) & (array < 3 * 0.538)), rtol=1e-12)


def test_half_wave_step_is_the_best_for_a_normal_distribution() -> None:
    """0.538, the constant that the paper gives for 2 bits and uniform levels."""
    x = np.linspace(1e-3, 8, 80001)
    density = np.exp(-(x**2) / 2)

    def error(step: float) -> float:
        return float((density * (x - step * np.clip(np.round(x / step), 1, 3)) ** 2).sum())

    steps = np.arange(0.4, 0.7, 0.001)
    assert steps[np.argmin([error(step) for step in steps])] == pytest.approx(0.538, abs=0.0015)


def test_unit_range() -> None:
    x = drawn()
    values, came, went = passed(quantizer("dorefa"), x)
    array = x.numpy()
    np.testing.assert_allclose(values, np.round(3 * np.clip(array, 0, 1)) / 3, rtol=1e-12)
    assert set(np.round(values * 3).ravel()) == {0, 1, 2, 3}
    np.testing.assert_allclose(went, came * ((array > 0) & (array < 1)), rtol=1e-12)


def test_interval_levels() -> None:
    x, made = drawn(), quantizer("qil")
    c, d = 0.9, 0.6
    for parameter, value in zip(made.parameters(), (c, d), strict=True):
        parameter.data.fill_(value)
    values, came, went = passed(made, x)
    array = x.numpy()
    linear = 0.5 / d * array - 0.5 * c / d + 0.5
    inside = (linear > 0) & (linear < 1)
    np.testing.assert_allclose(values, np.round(3 * np.clip(linear, 0, 1)) / 3, rtol=1e-12)
    np.testing.assert_allclose(went, came * inside * 0.5 / d, rtol=1e-12)
    centre, width = (float(p.grad) for p in made.parameters() if p.grad is not None)
    assert centre == pytest.approx(-(came * inside * 0.5 / d).sum())
    assert width == pytest.approx(-(came * inside * 0.5 * (array - c) / d**2).sum())


def test_learned_levels() -> None:
    x, made = drawn(), quantizer("lq")
    made.basis.copy_(torch.tensor([0.4, 1.1], dtype=torch.float64))  # type: ignore[operator, union-attr]
    values, came, went = passed(made, x)
    array, levels = x.numpy(), np.array([0, 0.4, 1.1, 1.5])
    np.testing.assert_allclose(values, levels[np.abs(array[..., None] - levels).argmin(-1)], rtol=1e-12)
    np.testing.assert_allclose(went, came * ((array > 0) & (array < 1.5)), rtol=1e-12)


def test_learned_levels_are_fitted_to_what_they_see() -> None:
    """One batch moves the basis a tenth of the way to the least-squares fit; many find the levels of their input."""
    made = quantizer("lq").train()
    basis = torch.tensor([0.4, 1.1], dtype=torch.float64)
    made.basis.copy_(basis)  # type: ignore[operator, union-attr]
    x = drawn()
    made(x)
    array = np.maximum(x.numpy().ravel(), 0)
    levels, codes = np.array([0, 0.4, 1.1, 1.5]), np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
    rows = codes[np.abs(array[:, None] - levels).argmin(1)]
    fit, *_ = np.linalg.lstsq(rows, array, rcond=None)
    np.testing.assert_allclose(made.basis.numpy(), 0.9 * basis.numpy() + 0.1 * fit, rtol=1e-9)  # type: ignore
    known = torch.tensor([0.0, 0.45, 1.2, 1.65], dtype=torch.float64).repeat(8).view(1, 1, 8, 4)
    for _ in range(200):
        made(known)
    np.testing.assert_allclose(sorted(made.basis.tolist()), [0.45, 1.2], rtol=1e-6)  # type: ignore


def test_learned_levels_of_nothing_positive_stay() -> None:
    made = quantizer("lq").train()
    before = made.basis.clone()  # type: ignore[operator, union-attr]
    made(torch.full((1, CHANNELS, 2, 2), -1.0, dtype=torch.float64))
    torch.testing.assert_close(made.basis, before)


@pytest.mark.parametrize("count", [1, 5])
def test_multi_base(count: int) -> None:
    x, made = drawn(), quantizer(f"abc-{count}")
    shift, scale = np.linspace(-0.6, 1.2, count), np.linspace(0.5, 0.1, count)
    for parameter, value in zip(made.parameters(), (shift, scale), strict=True):
        parameter.data.copy_(torch.from_numpy(value))
    values, came, went = passed(made, x)
    h = x.numpy()[..., None] + shift
    bases = np.where(np.clip(h, 0, 1) >= 0.5, 1.0, -1.0)
    inside = (h > 0) & (h < 1)
    np.testing.assert_allclose(values, (bases * scale).sum(-1), rtol=1e-12)
    np.testing.assert_allclose(went, came * (inside * scale).sum(-1), rtol=1e-12)
    gradients = [p.grad.numpy() for p in made.parameters() if p.grad is not None]
    places = (0, 1, 2, 3)
    np.testing.assert_allclose(gradients[0], (came[..., None] * inside * scale).sum(places), rtol=1e-10)
    np.testing.assert_allclose(gradients[1], (came[..., None] * bases).sum(places), rtol=1e-10)


def test_real_is_rectified() -> None:
    x = drawn()
    values, came, went = passed(quantizer("real"), x)
    np.testing.assert_array_equal(values, np.maximum(x.numpy(), 0))
    np.testing.assert_array_equal(went, came * (x.numpy() > 0))


@pytest.mark.parametrize("name", ["sign", "sign-ede", "sign-long-tail", "rsign", "abc-1", "abc-5"])
def test_bases_add_up_to_the_activations(name: str) -> None:
    x, made = drawn(), quantizer(name)
    total = sum(scale * torch.where(x + shift.view(-1, 1, 1) >= 0, 1.0, -1.0).double() for scale, shift in made.bases())
    torch.testing.assert_close(total, made(x).detach(), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", ["hwgq", "dorefa", "lq", "qil"])
def test_levels_are_the_quantizer(name: str) -> None:
    x, made = drawn(), quantizer(name)
    thresholds, levels = (row.double() for row in made.levels())
    torch.testing.assert_close(levels[torch.bucketize(x, thresholds, right=True)], made(x).detach())
    with pytest.raises(ConfigError, match="no sum of signs"):
        made.bases()


def test_signs_are_no_staircase_of_levels() -> None:
    with pytest.raises(ConfigError, match="no staircase"):
        quantizer("rsign").levels()
