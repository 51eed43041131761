"""The gate that picks one expert per sample (section 4.1): winner takes all forward, softmax backward."""

from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from ebnet.errors import ConfigError, NonFiniteError


class Gate(nn.Module):
    """phi(psi(x)): a linear map of the channels' spatial means, then a one-hot choice.

    Forward it is exactly one-hot; ties go to the lowest index. Backward it is the Jacobian of softmax(z / temperature)
    (eq. 4), or, for the paper's ablation, the derivative of sigmoid(z / temperature).
    """

    def __init__(
        self,
        in_channels: int,
        num_experts: int,
        gradient: Literal["softmax", "sigmoid"] = "softmax",
        temperature: float = 1.0,
    ) -> None:
        super().__init__()
        if gradient not in ("softmax", "sigmoid"):
            raise ConfigError(f"gate={gradient!r}: expected softmax or sigmoid")
        if not temperature > 0:
            raise ConfigError(f"temperature={temperature!r}: expected a positive number")
        self.gradient = gradient
        self.temperature = temperature
        # Replicated experts are equal, and only a random omega spreads the samples over them. The means it sees are
        # small (batch norm centres them), so a random bias would outweigh them and send every sample to one expert.
        self.linear = nn.Linear(in_channels, num_experts)
        nn.init.zeros_(self.linear.bias)

    def forward(self, mean: Tensor) -> Tensor:
        """The one-hot choice [batch, experts] from the channels' spatial means [batch, in]."""
        return _WinnerTakesAll.apply(self.linear(mean), self.gradient, self.temperature)

    def extra_repr(self) -> str:
        return f"gradient={self.gradient}, temperature={self.temperature:g}"


def require_finite(mean: Tensor) -> None:
    """A NaN compares false with everything: without this check the gate would silently pick some expert."""
    if not torch.isfinite(mean).all():
        raise non_finite()


def non_finite() -> NonFiniteError:
    return NonFiniteError("the input of an expert layer holds NaN or infinity; check the images and the weights")


class _WinnerTakesAll(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, gradient: str, temperature: float) -> Tensor:
        ctx.save_for_backward(z)
        ctx.gradient, ctx.temperature = gradient, temperature
        # torch's argmax leaves open which of several maxima it returns; the first one is the contract with the engine.
        first = (z == z.amax(1, keepdim=True)).to(torch.int8).argmax(1)
        return nn.functional.one_hot(first, z.shape[1]).to(z.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (z,) = ctx.saved_tensors
        z = z / ctx.temperature
        if ctx.gradient == "softmax":
            s = torch.softmax(z, 1)
            dz = s * (grad - (s * grad).sum(1, keepdim=True))
        else:
            s = torch.sigmoid(z)
            dz = grad * s * (1 - s)
        return dz / ctx.temperature, None, None
