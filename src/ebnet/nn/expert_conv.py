"""Expert Binary Convolution (section 4.1): N expert weight tensors, exactly one used per sample."""

from typing import Literal

import torch
from torch import Tensor, nn

from ebnet.errors import ConfigError
from ebnet.nn.binary_conv import BinaryConv2d
from ebnet.nn.expert_function import expert_convolution
from ebnet.nn.gate import Gate, require_finite
from ebnet.nn.geometry import Pair
from ebnet.nn.precision import Precision
from ebnet.nn.sign import Ste
from ebnet.nn.unit import binary_unit, refusal
from ebnet.nn.weights import PlainSign


class ExpertBinaryConv2d(BinaryConv2d):
    """EBConv(x) = BConv(x, (phi(psi(x))^T Theta)_r), eq. 2. With one expert it is a plain binary convolution.

    The experts' weights lie one after another in `weight` [N * out, in / groups, kh, kw] (`expert_weights` views them
    with the expert as first dimension), so that the layer goes wherever a convolution goes.

    Args:
        num_experts: N. `replicate` grows one trained expert to N.
        gate: the gate's gradient, ``softmax`` (the paper's) or ``sigmoid`` (its ablation).
        temperature: tau of the gate.

    Attributes:
        last_experts: the expert chosen for each sample of the last forward pass ([batch], int64), None before it.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Pair,
        stride: int | Pair = 1,
        padding: int | Pair | str = 0,
        dilation: int | Pair = 1,
        groups: int = 1,
        bias: bool = False,
        *,
        num_experts: int = 4,
        gate: Literal["softmax", "sigmoid"] = "softmax",
        temperature: float = 1.0,
        scaling: bool = False,
        precision: Precision | str = Precision.BINARY_INPUT,
        ste: Ste | str = Ste.CLIP,
        weights: str = "learned-scale",
        activations: str | None = None,
        orientations: int = 1,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            scaling=scaling,
            precision=precision,
            ste=ste,
            num_experts=num_experts,
            weights=weights,
            activations=activations,
            orientations=orientations,
        )
        self.gate_gradient: Literal["softmax", "sigmoid"] = gate
        self.temperature = temperature
        self.gate = self._make_gate(num_experts)
        self.last_experts: Tensor | None = None

    @property
    def expert_weights(self) -> Tensor:
        """The learned weights as [N, filters, in / groups, kh, kw]."""
        return self.weight.unflatten(0, (self.num_experts, -1))

    def replicate(self, num_experts: int) -> None:
        """Grow one expert to `num_experts` equal ones with a fresh random gate (optimization policy, step 2)."""
        if self.num_experts != 1:
            raise ConfigError(f"replicate({num_experts}): the layer has {self.num_experts} experts already, not one")
        if num_experts < 1:
            raise ConfigError(f"replicate({num_experts}): the number of experts must be at least 1")
        self.num_experts = num_experts
        self.weight = nn.Parameter(self.weight.detach().repeat(num_experts, 1, 1, 1))
        self.gate = self._make_gate(num_experts)
        if self.gate is not None:
            self.gate.to(self.weight.device, self.weight.dtype)

    def forward(self, x: Tensor) -> Tensor:
        self._check(x)
        if type(self) is ExpertBinaryConv2d and refusal(x, None, self, None) is None:
            return binary_unit(x, None, None, self, None)
        return super().forward(x)

    def convolve(self, x_hat: Tensor, mean: Tensor | None) -> Tensor:
        if self.gate is None:
            self.last_experts = torch.zeros(len(x_hat), dtype=torch.int64, device=x_hat.device)
            return super().convolve(x_hat, mean)
        assert mean is not None
        require_finite(mean)
        choice = self.gate(mean)
        self.last_experts = choice.detach().argmax(1)
        if self.precision.binary_weights and isinstance(self.weight_quantizer, PlainSign) and self.orientations == 1:
            return expert_convolution(x_hat, self.expert_weights, choice, self.geometry, Ste.CLIP)
        # With other quantizers the gate chooses among the quantized experts, and learns from those.
        experts = self.used_weight.unflatten(0, (self.num_experts, self.out_channels))
        return expert_convolution(x_hat, experts, choice, self.geometry, None)

    @property
    def _needs_mean(self) -> bool:
        return self.gate is not None or super()._needs_mean

    def _make_gate(self, num_experts: int) -> Gate | None:
        return Gate(self.in_channels, num_experts, self.gate_gradient, self.temperature) if num_experts > 1 else None
