"""The expert convolution as one differentiable operation that never builds a weight tensor per sample.

With e(b) the expert that the one-hot gate row of sample b names, and w_b = Theta_e(b) (Stage I) or sign(Theta_e(b))
(Stage II), the output is y_b = x_b * w_b. Written per sample, with G_b = d loss / d w_b times the derivative of the
sign's estimator (M_e; 1 in Stage I), the gradients are

    d x_b      = dgrad(dy_b, w_b)
    d Theta_i  = sum of G_b over the samples with e(b) = i
    d gate_bi  = <G_b, Theta_i>          for every expert i, chosen or not

Forward and input gradient are as many operations as one convolution: samples grouped by expert, one ordinary
convolution for each. The last two come from `sample_gradients`. On the CPU the native core does all of it at once
(`ebnet.nn.unit`).
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ebnet.nn.geometry import Geometry
from ebnet.nn.sample_gradients import rows_per_chunk, sample_gradients
from ebnet.nn.samples import Samples, rows_of
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
        ctx.samples = Samples(gate)
        y: Tensor | None = None
        for expert, indices in ctx.samples:
            part = geometry.conv(rows_of(x, indices), _used(theta[expert], ste))
            if len(indices) == len(x):
                return part
            if y is None:
                y = torch.empty(
                    (len(x), *part.shape[1:]), dtype=part.dtype, device=part.device, memory_format=_format(part)
                )
            y.index_copy_(0, indices, part)
        if y is None:
            return geometry.conv(x, theta[0])
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None, None, None]:
        x, theta = ctx.saved_tensors
        need_x, need_theta, need_gate = ctx.needs_input_grad[:3]
        dx = _input_gradient(dy, x, theta, ctx.samples, ctx.geometry, ctx.ste) if need_x else None
        if not (need_theta or need_gate):
            return dx, None, None, None, None
        dtheta, dgate = sample_gradients(x, dy, theta, ctx.samples, ctx.geometry, ctx.ste)
        return dx, dtheta if need_theta else None, dgate if need_gate else None, None, None


def _input_gradient(
    dy: Tensor, x: Tensor, theta: Tensor, samples: Samples, geometry: Geometry, ste: Ste | None
) -> Tensor:
    dx = torch.empty_like(x)
    for expert, indices in samples:
        used = _used(theta[expert], ste)
        for rows in indices.split(rows_per_chunk(x, dy)):
            dx.index_copy_(0, rows, geometry.input_gradient(rows_of(dy, rows), rows_of(x, rows), used))
    return dx


def _used(latent: Tensor, ste: Ste | None) -> Tensor:
    return latent if ste is None else hard_sign(latent)


def _format(x: Tensor) -> torch.memory_format:
    last = x.is_contiguous(memory_format=torch.channels_last) and not x.is_contiguous()
    return torch.channels_last if last else torch.contiguous_format
