"""The expert convolution as the authors' code computes it: a weight tensor per sample, one conv of batch x groups.

The point of comparison for the benchmarks; `use_naive` puts it into any network.
"""

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
