"""The layers' formulas written out with ordinary differentiable torch operations: one weight tensor per sample."""

import torch
import torch.nn.functional as F
from torch import Tensor

from ebnet.nn import ExpertBinaryConv2d


def straight_through(x: Tensor) -> Tensor:
    """sign forward, clipped identity backward, by value substitution."""
    clipped = x.clamp(-1, 1)
    return clipped + (torch.where(x >= 0, 1.0, -1.0).to(x.dtype) - clipped).detach()


def expert_conv(layer: ExpertBinaryConv2d, x: Tensor) -> Tensor:
    """EBConv of section 4.1, sample by sample."""
    assert layer.gate is not None
    mean = x.mean((2, 3))
    z = layer.gate.linear(mean)
    soft = torch.softmax if layer.gate_gradient == "softmax" else lambda v, _: torch.sigmoid(v)
    s = soft(z / layer.temperature, 1)
    gate = s + (F.one_hot(z.argmax(1), z.shape[1]).to(x.dtype) - s).detach()
    x_hat = straight_through(x) if layer.precision.binary_input else x
    weight = gate @ layer.expert_weights.flatten(1)
    if layer.precision.binary_weights:
        weight = straight_through(weight)
    weights = weight.view(len(x), layer.out_channels, *layer.weight.shape[1:])
    rows = [
        F.conv2d(x_hat[b : b + 1], weights[b], None, layer.stride, layer.padding, layer.dilation, layer.groups)
        for b in range(len(x))
    ]
    y = torch.cat(rows) * layer.scale.view(1, -1, 1, 1)
    return y if layer.scaling is None else y * layer.scaling(mean)[:, :, None, None]
