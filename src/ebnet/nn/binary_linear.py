"""A fully connected layer with binary inputs and weights."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ebnet.errors import ConfigError, ShapeError
from ebnet.nn.precision import BinaryLayer, Precision
from ebnet.nn.sign import Ste, sign


class BinaryLinear(BinaryLayer):
    """Drop-in for `nn.Linear`: (sign(x) sign(W)^T) * scale + bias, precision as state."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = False,
        precision: Precision | str = Precision.BINARY_INPUT,
        ste: Ste | str = Ste.CLIP,
    ) -> None:
        super().__init__()
        if in_features < 1 or out_features < 1:
            raise ConfigError(f"BinaryLinear({in_features}, {out_features}): features must be at least 1")
        self.in_features, self.out_features = in_features, out_features
        self.precision = Precision.REAL
        self.ste = Ste(ste)
        self.weight = nn.Parameter(torch.empty(out_features, in_features))
        self.scale = nn.Parameter(torch.ones(out_features))
        self.bias = nn.Parameter(torch.zeros(out_features)) if bias else None
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        self.move_to(Precision.parse(precision))

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[-1] != self.in_features:
            raise ShapeError(f"BinaryLinear expects {self.in_features} features, got a tensor {tuple(x.shape)}")
        if self.precision.binary_input:
            x = sign(x, self.ste)
        weight = sign(self.weight) if self.precision.binary_weights else self.weight
        y = F.linear(x, weight) * self.scale
        return y if self.bias is None else y + self.bias

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.out_features}, precision={self.precision}"
