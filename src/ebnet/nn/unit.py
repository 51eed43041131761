"""The binary unit as one operation of the native core: batch norm, gate, sign, expert convolution, scales, PReLU, skip.

The layers themselves are the specification, and the way on other devices and for other types; `refusal` says when it is
taken. The order of the work and its arithmetic are in native/train/unit.h.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from ebnet.nn import native
from ebnet.nn.activations import Sign
from ebnet.nn.gate import Gate, non_finite
from ebnet.nn.sign import Ste
from ebnet.nn.weights import PlainSign

if TYPE_CHECKING:
    from ebnet.nn.expert_conv import ExpertBinaryConv2d

ESTIMATORS = {Ste.IDENTITY: 0, Ste.CLIP: 1, Ste.POLYNOMIAL: 2}


def refusal(x: Tensor, norm: nn.Module | None, conv: "ExpertBinaryConv2d", act: nn.Module | None) -> str | None:
    """Why these layers go through torch for this input; None where the native operation serves them."""
    if torch.compiler.is_compiling():
        return "torch.compile"
    if not native.enabled():
        return "EBNET_TRAIN=torch" if native.kernels is not None else "no native core is installed"
    weight = native.parameter(conv, "weight")
    if x.dtype != torch.float32 or not x.is_cpu or weight.dtype != torch.float32:
        return f"{x.dtype} on {x.device.type}".removeprefix("torch.")
    if torch.is_autocast_enabled("cpu"):
        return "autocast"
    if x.dim() != 4 or x.shape[1] != conv.in_channels or x.numel() == 0:
        return f"an input of shape {tuple(x.shape)}"
    if not (x.is_contiguous() and weight.is_contiguous()):
        return "channels last"
    if norm is not None and (reason := _norm_refusal(x, norm)):
        return reason
    if act is not None and not (type(act) is nn.PReLU and act.weight.numel() == conv.out_channels):
        return f"{type(act).__name__} instead of a PReLU per channel"
    if conv.precision.binary_input and type(conv.input_quantizer) is not Sign:
        return f"{type(conv.input_quantizer).__name__} activations"
    if conv.precision.binary_weights and not isinstance(conv.weight_quantizer, PlainSign):
        return f"{type(conv.weight_quantizer).__name__} weights"
    if conv.orientations > 1:
        return "filters in several orientations"
    gate, scaling = conv.gate, conv.scaling
    inner = [norm, conv, act] if norm is not None or act is not None else []
    inner += [] if gate is None else [gate, gate.linear]
    inner += [] if scaling is None else [scaling, scaling.squeeze, scaling.excite]
    return "hooks on its layers" if any(_hooked(module) for module in inner if module is not None) else None


def _norm_refusal(x: Tensor, norm: nn.Module) -> str | None:
    if type(norm) is not nn.BatchNorm2d:
        return f"{type(norm).__name__} instead of BatchNorm2d"
    if norm.weight is None or norm.running_mean is None:
        return "a batch norm without weights or running statistics"
    # A single value per channel has no variance: torch's layer says so.
    return "one value per channel" if norm.training and x.numel() == x.shape[1] else None


def _hooked(module: nn.Module) -> bool:
    return bool(
        module._forward_hooks or module._forward_pre_hooks or module._backward_hooks or module._backward_pre_hooks
    )


def binary_unit(
    x: Tensor, skip: Tensor | None, norm: nn.BatchNorm2d | None, conv: "ExpertBinaryConv2d", act: nn.PReLU | None
) -> Tensor:
    """act(conv(norm(x))) + skip, for layers without a `refusal`."""
    gate, scaling, of = conv.gate, conv.scaling, native.parameter
    linear = None if gate is None else gate.linear
    parameters = (
        None if norm is None else of(norm, "weight"),
        None if norm is None else of(norm, "bias"),
        of(conv, "weight"),
        of(conv, "scale"),
        conv.bias,
        None if linear is None else of(linear, "weight"),
        None if linear is None else of(linear, "bias"),
        None if scaling is None else scaling.squeeze.weight,
        None if scaling is None else scaling.excite.weight,
        None if act is None else of(act, "weight"),
    )
    kind = _kind(norm, conv, gate, skip is not None)
    y, conv.last_experts = _Unit.apply(kind, x, None if skip is x else skip, *parameters)
    return y


class _Kind(NamedTuple):
    """What a unit is, beside its tensors."""

    geometry: tuple[int, ...]
    experts: int
    flags: tuple[bool, bool, bool, bool, bool]
    estimator: int
    reals: tuple[float, float, float]
    running: tuple[Tensor | None, Tensor | None]
    keeps: bool


def _kind(norm: nn.BatchNorm2d | None, conv: "ExpertBinaryConv2d", gate: Gate | None, skips: bool) -> _Kind:
    precision = conv.precision
    training = norm is not None and norm.training
    flags = (
        precision.binary_input,
        precision.binary_weights,
        training,
        gate is not None and gate.gradient == "sigmoid",
        skips,
    )
    estimator = 0
    if precision.binary_input:
        assert isinstance(conv.input_quantizer, Sign)
        estimator = ESTIMATORS[conv.input_quantizer.ste]
    eps, momentum = 0.0, 0.0
    running: tuple[Tensor | None, Tensor | None] = (None, None)
    if norm is not None:
        eps, running = norm.eps, (norm.running_mean, norm.running_var)
        if training:
            assert norm.num_batches_tracked is not None
            norm.num_batches_tracked.add_(1)
            momentum = 1.0 / float(norm.num_batches_tracked) if norm.momentum is None else norm.momentum
    geometry = (*conv.kernel_size, *conv.stride, *conv.padding, *conv.dilation, conv.groups)
    reals = (eps, momentum, 1.0 if gate is None else gate.temperature)
    return _Kind(geometry, conv.num_experts, flags, estimator, reals, running, torch.is_grad_enabled())


class _Unit(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, kind: _Kind, x: Tensor, skip: Tensor | None, *parameters: Tensor | None) -> Any:
        gamma, beta, theta, *rest = parameters
        assert theta is not None
        squeeze = parameters[7]
        batch, channels, height, width = x.shape
        out, hidden = len(theta) // kind.experts, 0 if squeeze is None else len(squeeze)
        numbers = (batch, channels, height, width, out, *kind.geometry, kind.experts, hidden)
        addresses = tuple(_address(t) for t in (gamma, beta, *kind.running, theta, *rest))
        unit = native.kernels.Unit(numbers, kind.flags, kind.estimator, kind.reals, addresses)
        y = x.new_empty(batch, out, *unit.out_size)
        kept = x.new_empty(unit.kept)
        chosen = x.new_empty(batch, dtype=torch.int64)
        conv = x.new_empty(unit.conv, dtype=torch.int16 if unit.counts else torch.float32) if kind.keeps else None
        tensors = tuple(_address(t) for t in (x, None if skip is None else skip.contiguous(), y, conv, kept, chosen))
        if not unit.forward(tensors, torch.get_num_threads()):
            raise non_finite()
        ctx.mark_non_differentiable(chosen)
        if kind.keeps:
            ctx.save_for_backward(x, conv, kept, chosen, *parameters)
            ctx.unit, ctx.skip_is_x = unit, skip is None
        return y, chosen

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        x, conv, kept, chosen, *parameters = ctx.saved_tensors
        dy, dx = dy.contiguous(), torch.empty_like(x)
        gradients = [None if p is None else torch.empty_like(p) for p in parameters]
        tensors = tuple(_address(t) for t in (x, dy, conv, kept, chosen, dx, *gradients))
        ctx.unit.backward(tensors, ctx.skip_is_x, torch.get_num_threads())
        return None, dx, dy if ctx.needs_input_grad[2] else None, *gradients


def _address(tensor: Tensor | None) -> int:
    return 0 if tensor is None else tensor.data_ptr()
