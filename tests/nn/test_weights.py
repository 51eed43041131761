"""Every weight quantizer against its paper's formulas, written here a second time, in float64."""

import itertools
import math
from typing import get_args

import numpy as np
import pytest
import torch
from torch import Tensor

from ebnet.errors import ConfigError
from ebnet.models.config import Weights
from ebnet.nn.ede import ErrorDecay, error_decays
from ebnet.nn.weights import WEIGHTS, WeightQuantizer, weight_quantizer

SHAPE = (6, 4, 3, 3)


def quantizer(name: str) -> WeightQuantizer:
    return weight_quantizer(name, (3, 3)).double()


def drawn(seed: int = 0) -> Tensor:
    """Weights of which some are beyond 1 in size, none of them at a threshold."""
    generator = torch.Generator().manual_seed(seed)
    return 0.7 * torch.randn(SHAPE, dtype=torch.float64, generator=generator) + 0.1


def passed(name: str, w: Tensor) -> tuple[np.ndarray, np.ndarray, np.ndarray, WeightQuantizer]:
    """Values, the gradient that came and the one that went on, as arrays."""
    made = quantizer(name)
    made.begin(w)
    latent = w.clone().requires_grad_()
    values = made(latent)
    came = torch.randn(SHAPE, dtype=torch.float64, generator=torch.Generator().manual_seed(9))
    values.backward(came)
    assert latent.grad is not None
    return values.detach().numpy(), came.numpy(), latent.grad.numpy(), made


def signs(w: np.ndarray) -> np.ndarray:
    return np.where(w >= 0, 1.0, -1.0)


def test_names_are_the_recipes() -> None:
    assert tuple(WEIGHTS) == get_args(Weights)
    with pytest.raises(ConfigError, match=r"weights='xnor': expected one of learned-scale, sign"):
        weight_quantizer("xnor", (3, 3))


@pytest.mark.parametrize("name", ["sign", "learned-scale"])
def test_sign(name: str) -> None:
    w = drawn()
    values, came, went, made = passed(name, w)
    np.testing.assert_array_equal(values, signs(w.numpy()))
    np.testing.assert_array_equal(went, came * (np.abs(w.numpy()) <= 1))
    assert made.learns_scale == (name == "learned-scale")


def test_channel_mean() -> None:
    w = drawn()
    values, came, went, _ = passed("channel-mean", w)
    alpha = np.abs(w.numpy()).mean((1, 2, 3), keepdims=True)
    np.testing.assert_allclose(values, alpha * signs(w.numpy()), rtol=1e-12)
    np.testing.assert_allclose(went, came * (1 / 36 + alpha * (np.abs(w.numpy()) <= 1)), rtol=1e-12)
    # alpha is the least-squares scale: any other fits the filter worse.
    error = ((w.numpy() - values) ** 2).sum()
    for other in (0.99, 1.01):
        assert ((w.numpy() - other * values) ** 2).sum() > error


def test_fitted() -> None:
    w = drawn()
    values, came, went, _ = passed("lq", w)
    rows, codes = w.numpy().reshape(6, -1), signs(w.numpy()).reshape(6, -1)
    # The paper's fit for each filter: v = (B'B)^-1 B'w.
    levels = [float(b @ r / (b @ b)) for b, r in zip(codes, rows, strict=True)]
    np.testing.assert_allclose(values.reshape(6, -1), np.array(levels)[:, None] * codes, rtol=1e-12)
    np.testing.assert_array_equal(went, came)


def test_magnitude() -> None:
    w = drawn()
    values, came, went, _ = passed("magnitude", w)
    alpha = np.abs(w.numpy()).mean((1, 2, 3), keepdims=True)
    np.testing.assert_allclose(values, alpha * signs(w.numpy()), rtol=1e-12)
    np.testing.assert_allclose(went, came * alpha * (np.abs(w.numpy()) <= 1), rtol=1e-12)


def test_layer_mean() -> None:
    w = drawn()
    values, came, went, _ = passed("layer-mean", w)
    np.testing.assert_allclose(values, np.abs(w.numpy()).mean() * signs(w.numpy()), rtol=1e-12)
    np.testing.assert_array_equal(went, came)


def test_libra() -> None:
    w = drawn()
    values, came, went, _ = passed("libra", w)
    rows = w.numpy().reshape(6, -1)
    standard = (rows - rows.mean(1, keepdims=True)) / rows.std(1, keepdims=True)
    shift = 2.0 ** np.round(np.log2(np.abs(standard).mean(1, keepdims=True)))
    np.testing.assert_allclose(values.reshape(6, -1), shift * signs(standard), rtol=1e-12)
    # Backward by hand: the estimator's slope (t = 0.1, k = 10 at the start), then the standardisation's Jacobian.
    t, n = 0.1, rows.shape[1]
    slope = shift * 10 * t * (1 - np.tanh(t * standard) ** 2) * came.reshape(6, -1)
    inner = slope - slope.mean(1, keepdims=True) - standard * (slope * standard).sum(1, keepdims=True) / n
    np.testing.assert_allclose(went.reshape(6, -1), inner / rows.std(1, keepdims=True), rtol=1e-9, atol=1e-12)


def test_libra_keeps_a_weights_whole_bit() -> None:
    """IR-Net's first fact: balanced signs have an entropy of 1 bit, where those of a biased filter have less."""
    w = 0.1 * torch.randn((8, 64, 3, 3), generator=torch.Generator().manual_seed(1)) + 0.1
    ((scale, latent),) = quantizer("libra").bases(w.double())

    def entropy(values: Tensor) -> float:
        p = float((values >= 0).double().mean())
        return -p * math.log2(p) - (1 - p) * math.log2(1 - p)

    assert entropy(w) < 0.7
    assert entropy(latent) > 0.999
    assert set(torch.log2(scale).frac().tolist()) == {0.0}


def test_libra_of_equal_weights_is_no_nan() -> None:
    assert torch.isfinite(quantizer("libra")(torch.full(SHAPE, 0.3, dtype=torch.float64))).all()


@pytest.mark.parametrize(("progress", "sharpness"), [(0.0, 0.1), (0.5, 1.0), (1.0, 10.0)])
def test_error_decay_sharpens(progress: float, sharpness: float) -> None:
    holder = torch.nn.Sequential(ErrorDecay())
    for estimator in error_decays(holder):
        estimator.progress = progress
    x = torch.tensor([-1.5, -0.2, 0.0, 0.7], dtype=torch.float64, requires_grad=True)
    estimator = holder[0]
    assert isinstance(estimator, ErrorDecay)
    assert estimator.sharpness == pytest.approx(sharpness)
    values = estimator.sign(x)
    assert values.tolist() == [-1, -1, 1, 1]
    values.sum().backward()
    k = max(1 / sharpness, 1)
    assert x.grad is not None
    expected = [k * sharpness * (1 - math.tanh(sharpness * v) ** 2) for v in x.tolist()]
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-9, atol=1e-15)


def test_ternary() -> None:
    w = drawn()
    values, came, went, made = passed("ttq", w)
    array = w.numpy()
    delta = 0.05 * np.abs(array).max()
    above, below = array > delta, array < -delta
    positive, negative = array[above].mean(), -array[below].mean()
    np.testing.assert_allclose(values, positive * above - negative * below, rtol=1e-12)
    np.testing.assert_allclose(went, came * np.where(above, positive, np.where(below, negative, 1)), rtol=1e-12)
    gradients = {name: parameter.grad for name, parameter in made.named_parameters()}
    assert float(gradients["positive"]) == pytest.approx(came[above].sum())  # type: ignore[arg-type]
    assert float(gradients["negative"]) == pytest.approx(-came[below].sum())  # type: ignore[arg-type]


def test_interval_ternary() -> None:
    w = drawn()
    made = quantizer("qil")
    made.begin(w)
    values = {parameter: p.item() for parameter, p in made.named_parameters()}
    half = float(w.abs().max()) / 2
    assert values == pytest.approx({"gamma": 1.0, "interval.centre": half, "interval.half_width": half})
    # An interval of which both ends prune and clip.
    c, d, gamma = 0.6, 0.4, 1.3
    for parameter, value in zip(made.parameters(), (gamma, c, d), strict=True):
        parameter.data.fill_(value)
    latent = w.clone().requires_grad_()
    made(latent).sum().backward()
    size = np.abs(w.numpy())
    alpha, beta = 0.5 / d, -0.5 * c / d + 0.5
    inside = (size > c - d) & (size < c + d)
    linear = np.clip(alpha * size + beta, 0, 1)
    np.testing.assert_array_equal(made(w).detach().numpy(), np.sign(w.numpy()) * np.round(linear**gamma))
    power = np.where(inside, gamma * np.maximum(linear, 1e-12) ** (gamma - 1), 0)
    assert latent.grad is not None
    np.testing.assert_allclose(latent.grad.numpy(), power * alpha, rtol=1e-9)
    gradients = {name: float(p.grad) for name, p in made.named_parameters() if p.grad is not None}
    toward = np.sign(w.numpy()) * power
    assert gradients["interval.centre"] == pytest.approx((toward * -alpha).sum())
    assert gradients["interval.half_width"] == pytest.approx((toward * -0.5 * (size - c) / d**2).sum())
    logs = np.where(inside, linear**gamma * np.log(np.maximum(linear, 1e-12)), 0)
    assert gradients["gamma"] == pytest.approx((np.sign(w.numpy()) * logs).sum())


def test_soft_sign() -> None:
    w = drawn()
    values, came, went, made = passed("dsq", w)
    array, u, a = w.numpy(), float(w.abs().mean()), 0.2
    np.testing.assert_allclose(values, u * signs(array), rtol=1e-12)
    k = math.log(2 / a - 1) / (2 * u)
    # The paper's identity: the factor that makes neighbouring steps meet, 1 / tanh(k Delta / 2), is 1 / (1 - alpha).
    assert 1 / math.tanh(k * u) == pytest.approx(1 / (1 - a))
    inside = np.abs(array) < u
    np.testing.assert_allclose(went, came * inside * u * k * (1 - np.tanh(k * array) ** 2) / (1 - a), rtol=1e-7)

    def soft(u: float, a: float) -> float:
        k = math.log(2 / a - 1) / (2 * u)
        return float((came * u * np.tanh(k * np.clip(array, -u, u)) / np.tanh(k * u)).sum())

    gradients = {name: float(p.grad) for name, p in made.named_parameters() if p.grad is not None}
    step = 1e-6
    assert gradients["alpha"] == pytest.approx((soft(u, a + step) - soft(u, a - step)) / (2 * step), rel=1e-5)
    assert gradients["bound"] == pytest.approx((soft(u + step, a) - soft(u - step, a)) / (2 * step), rel=1e-5)


def test_pixel_scale() -> None:
    w = drawn()
    values, came, went, made = passed("syq", w)
    alpha = np.abs(w.numpy()).mean((0, 1))
    np.testing.assert_allclose(values, alpha * signs(w.numpy()), rtol=1e-12)
    np.testing.assert_allclose(went, came * alpha * (np.abs(w.numpy()) <= 1), rtol=1e-12)
    (parameter,) = made.parameters()
    assert parameter.grad is not None
    np.testing.assert_allclose(parameter.grad.numpy(), (came * signs(w.numpy())).sum((0, 1)), rtol=1e-10)


@pytest.mark.parametrize(("name", "count"), [("abc-1", 1), ("abc-5", 5)])
def test_multi_base(name: str, count: int) -> None:
    w = drawn()
    values, came, went, _ = passed(name, w)
    flat = w.numpy().reshape(-1)
    shifts = [0.0] if count == 1 else [-1, -0.5, 0, 0.5, 1]
    bases = np.stack([signs(flat - flat.mean() + u * flat.std()) for u in shifts], 1)
    alpha, *_ = np.linalg.lstsq(bases, flat, rcond=None)
    np.testing.assert_allclose(values.reshape(-1), bases @ alpha, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(went, came * alpha.sum(), rtol=1e-9)


def test_more_bases_fit_better() -> None:
    w = drawn()
    errors = [float((quantizer(name)(w) - w).square().sum()) for name in ("abc-1", "abc-5")]
    assert errors[1] < errors[0] / 2


@pytest.mark.parametrize(
    "name", ["sign", "channel-mean", "layer-mean", "lq", "magnitude", "libra", "dsq", "abc-1", "abc-5"]
)
def test_bases_add_up_to_the_weights(name: str) -> None:
    w, made = drawn(3), quantizer(name)
    made.begin(w)
    total = sum(scale.view(-1, 1, 1, 1) * torch.where(base >= 0, 1.0, -1.0) for scale, base in made.bases(w))
    torch.testing.assert_close(total, made(w).detach(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["syq", "ttq", "qil"])
def test_others_say_that_they_are_no_signs(name: str) -> None:
    with pytest.raises(ConfigError, match="no sum of signs with a scale per output channel"):
        quantizer(name).bases(drawn())


def test_one_bit_of_lq_net_is_the_channel_mean() -> None:
    """LQ-Net's fit at one bit has a closed form: of all v and signs, mean(abs(w)) and sign(w) are the best."""
    row = torch.tensor([0.3, -0.9, 0.2, 1.1], dtype=torch.float64).view(1, 4, 1, 1)
    fitted = weight_quantizer("lq", (1, 1))(row).flatten().numpy()
    best = min(
        (float(((row.flatten().numpy() - v * np.array(code)) ** 2).sum()), v)
        for code in itertools.product((-1, 1), repeat=4)
        for v in np.linspace(0, 1.5, 1501)
    )
    assert best[1] == pytest.approx(abs(fitted[0]), abs=1e-3)
