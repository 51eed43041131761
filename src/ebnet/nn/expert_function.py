"""The expert convolution as one differentiable operation that never builds a weight tensor per sample.

With e(b) the expert that the one-hot gate row of sample b names, and w_b = Theta_e(b) (Stage I) or sign(Theta_e(b))
(Stage II), the output is y_b = x_b * w_b. Written per sample, with G_b = d loss / d w_b times the derivative of the
sign's estimator (M_e; 1 in Stage I), the gradients are

    d x_b      = dgrad(dy_b, w_b)
    d Theta_i  = sum of G_b over the samples with e(b) = i
    d gate_bi  = <G_b, Theta_i>          for every expert i, chosen or not

Forward and input gradient group the batch by expert: one ordinary convolution per expert, together as many operations
as one convolution. The last two come from `sample_gradients`.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ebnet.nn.geometry import Geometry
from ebnet.nn.sample_gradients import CHUNK, sample_gradients
from ebnet.nn.sign import Ste, hard_sign


@torch.compiler.disable
def expert_convolution(x: Tensor, theta: Tensor, gate: Tensor, geometry: Geometry, ste: Ste | None) -> Tensor:
    """Convolve each sample with the expert its gate row names.

    Args:
        x: [batch, in, height, width], already binarized.
        theta: [experts, out, in / groups, kh, kw], the latent real weights.
        gate: [batch, experts], one-hot rows.
        ste: the estimator for binary weights; None uses the real ones.
    """
    if torch.is_autocast_enabled(x.device.type):
        dtype = torch.get_autocast_dtype(x.device.type)
        x, theta, gate = x.to(dtype), theta.to(dtype), gate.to(dtype)
    return _ExpertConvolution.apply(x, theta, gate, geometry, ste)


class _ExpertConvolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, theta: Tensor, gate: Tensor, geometry: Geometry, ste: Ste | None) -> Tensor:
        ctx.save_for_backward(x, theta)
        ctx.geometry, ctx.ste = geometry, ste
        ctx.experts = _samples_by_expert(gate)
        y: Tensor | None = None
        for expert, samples in ctx.experts:
            part = geometry.conv(_rows(x, samples), _used(theta[expert], ste))
            if len(samples) == len(x):
                return part
            if y is None:
                y = torch.empty(
                    (len(x), *part.shape[1:]), dtype=part.dtype, device=part.device, memory_format=_format(part)
                )
            y.index_copy_(0, samples, part)
        if y is None:
            return geometry.conv(x, theta[0])
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None, None, None]:
        x, theta = ctx.saved_tensors
        need_x, need_theta, need_gate = ctx.needs_input_grad[:3]
        dx = torch.empty_like(x) if need_x else None
        dgate = x.new_zeros(len(x), len(theta)) if need_gate else None
        parts = sample_gradients(theta, ctx.geometry, dy.shape[2] * dy.shape[3]) if need_gate else None
        totals = None if need_gate else torch.zeros_like(theta)
        for expert, samples in ctx.experts:
            used = _used(theta[expert], ctx.ste)
            mask = _mask(theta[expert], ctx.ste)
            for rows in samples.split(_rows_per_chunk(x, dy)):
                xe, dye = _rows(x, rows), _rows(dy, rows)
                if dx is not None:
                    dx.index_copy_(0, rows, ctx.geometry.input_gradient(dye, xe, used))
                if parts is not None and dgate is not None:
                    dgate.index_copy_(0, rows, parts.add(expert, dye, xe, mask))
                elif totals is not None and need_theta:
                    totals[expert] += ctx.geometry.weight_gradient(dye, xe, used)
        dtheta = None
        if need_theta:
            dtheta = totals if parts is None else parts.weight_gradients()
            dtheta = dtheta if ctx.ste is None else ctx.ste.backward(dtheta, theta)
        return dx, dtheta, dgate, None, None


def _samples_by_expert(gate: Tensor) -> list[tuple[int, Tensor]]:
    """The experts that have samples, each with its samples' indices in order."""
    chosen = gate.argmax(1)
    order = torch.argsort(chosen, stable=True)
    counts = torch.bincount(chosen, minlength=gate.shape[1]).tolist()
    return [(expert, samples) for expert, samples in enumerate(order.split(counts)) if len(samples)]


def _rows(x: Tensor, samples: Tensor) -> Tensor:
    """The samples of `x`; all of them without a copy (they are in order then)."""
    return x if len(samples) == len(x) else x.index_select(0, samples)


def _rows_per_chunk(x: Tensor, dy: Tensor) -> int:
    return max(1, CHUNK // max(x.shape[1:].numel(), dy.shape[1:].numel(), 1))


def _used(latent: Tensor, ste: Ste | None) -> Tensor:
    return latent if ste is None else hard_sign(latent)


def _mask(latent: Tensor, ste: Ste | None) -> Tensor | None:
    """The derivative of the sign's estimator at the weights; None where it is 1 for all, as it mostly is."""
    if ste is None or (ste is Ste.CLIP and bool(latent.abs().max() <= 1)):
        return None
    return ste.backward(torch.ones_like(latent), latent)


def _format(x: Tensor) -> torch.memory_format:
    last = x.is_contiguous(memory_format=torch.channels_last) and not x.is_contiguous()
    return torch.channels_last if last else torch.contiguous_format
