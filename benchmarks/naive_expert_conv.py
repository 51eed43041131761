"""The expert convolution as the authors' code computes it: a weight tensor per sample, one conv of batch x groups.

The point of comparison for the benchmarks; `use_naive` puts it into any network.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ebnet.nn import ExpertBinaryConv2d
from ebnet.nn.sign import sign


def convolve(layer: ExpertBinaryConv2d, x_hat: Tensor, mean: Tensor) -> Tensor:
    """What `ExpertBinaryConv2d.convolve` returns, through per-sample weights."""
    assert layer.gate is not None
    batch, channels, height, width = x_hat.shape
    weight = layer.gate(mean) @ layer.expert_weights.flatten(1)
    if layer.precision.binary_weights:
        weight = sign(weight)
    weight = weight.view(batch * layer.out_channels, *layer.weight.shape[1:])
    x_hat = x_hat.reshape(1, batch * channels, height, width)
    y = F.conv2d(x_hat, weight, None, layer.stride, layer.padding, layer.dilation, batch * layer.groups)
    return y.view(batch, layer.out_channels, *y.shape[2:])


def use_naive(model: nn.Module) -> None:
    """Let every expert convolution of `model` compute this way."""
    for layer in model.modules():
        if isinstance(layer, ExpertBinaryConv2d) and layer.gate is not None:
            layer.convolve = lambda x_hat, mean, layer=layer: convolve(layer, x_hat, mean)  # type: ignore[assignment, misc]


def largest_difference(layer: ExpertBinaryConv2d, x: Tensor) -> float:
    """Between both formulations, over output and gradients, relative to the largest value of each."""
    mean = x.mean((2, 3))
    results = []
    for run in (lambda: layer.convolve(x, mean), lambda: convolve(layer, x, mean)):
        y = run()
        inputs = [layer.weight, *layer.gate.parameters()]  # type: ignore[union-attr]
        results.append([y.detach(), *torch.autograd.grad(y, inputs, torch.cos(y.detach()))])
    return max(float((a - b).abs().max() / a.abs().max().clamp(min=1e-30)) for a, b in zip(*results, strict=True))
