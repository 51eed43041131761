"""Binarized CondConv, the baseline of section 5: all experts are mixed, so the mixture must be binarized again."""

from typing import Any

import torch
from torch import Tensor, nn

from ebnet.nn.binary_conv import BinaryConv2d
from ebnet.nn.geometry import Geometry, Pair
from ebnet.nn.sign import Ste, sign


class CondBinaryConv2d(BinaryConv2d):
    """y_b = sign(x_b) * sign(sum_i r_bi sign(W_i)), r_b = sigmoid(routing of the channels' means) (Yang et al., 2019).

    The double binarization is the paper's point of comparison: in Stage II each expert is binarized, and so is their
    mixture. With unnormalised routing the outer clip blocks most gradients; `outer_ste=Ste.IDENTITY` lets them through.
    Every sample has its own weights, which is what costs CondConv its memory. All else is as in `BinaryConv2d`.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Pair,
        *shape: Any,
        num_experts: int = 4,
        outer_ste: Ste | str = Ste.CLIP,
        **settings: Any,
    ) -> None:
        super().__init__(in_channels, out_channels, kernel_size, *shape, num_experts=num_experts, **settings)
        self.outer_ste = Ste(outer_ste)
        self.routing = nn.Linear(in_channels, num_experts)

    @property
    def _needs_mean(self) -> bool:
        return True

    def convolve(self, x_hat: Tensor, mean: Tensor | None) -> Tensor:
        assert mean is not None
        batch, channels, height, width = x_hat.shape
        weights = self.weight.reshape(self.num_experts, -1)
        if self.precision.binary_weights:
            weights = sign(weights)
        mixture = torch.sigmoid(self.routing(mean)) @ weights
        if self.precision.binary_weights:
            mixture = sign(mixture, self.outer_ste)
        # One convolution with batch * groups groups applies each sample's own weights.
        per_sample = Geometry(self.stride, self.padding, self.dilation, batch * self.groups)
        weight = mixture.view(batch * self.out_channels, *self.weight.shape[1:]).to(x_hat.dtype)
        y = per_sample.conv(x_hat.reshape(1, batch * channels, height, width), weight)
        return y.view(batch, self.out_channels, *y.shape[2:])
