import math

import pytest
import torch

from ebnet.nn import Ste, sign


def gradient(x: torch.Tensor, ste: Ste) -> list[float]:
    x = x.clone().requires_grad_()
    sign(x, ste).backward(torch.full_like(x, 3.0))
    assert x.grad is not None
    return x.grad.tolist()


POINTS = torch.tensor([-2.0, -1.0, -0.5, -0.0, 0.0, 0.25, 1.0, 1.5], dtype=torch.float64)


def test_zero_is_positive() -> None:
    assert sign(POINTS).tolist() == [-1, -1, -1, 1, 1, 1, 1, 1]


def test_clip_passes_up_to_and_including_one() -> None:
    assert gradient(POINTS, Ste.CLIP) == [0, 3, 3, 3, 3, 3, 3, 0]
    assert gradient(POINTS.float(), Ste.CLIP) == [0, 3, 3, 3, 3, 3, 3, 0]
    above = torch.tensor([math.nextafter(1.0, 2.0) + 1e-15], dtype=torch.float64)
    assert gradient(above, Ste.CLIP) == [0]


def test_polynomial_is_bi_reals() -> None:
    # d/dx of (2x + x^2) below zero and (2x - x^2) above: 2 + 2x and 2 - 2x.
    assert gradient(POINTS, Ste.POLYNOMIAL) == [0, 0, 3, 6, 6, 4.5, 0, 0]


def test_identity_passes_everything() -> None:
    assert gradient(POINTS, Ste.IDENTITY) == [3.0] * 8


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_keeps_the_type(dtype: torch.dtype) -> None:
    assert sign(torch.randn(3, dtype=dtype)).dtype == dtype


def test_unknown_estimator() -> None:
    with pytest.raises(ValueError, match="bireal"):
        sign(POINTS, "bireal")
