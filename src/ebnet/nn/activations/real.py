"""No quantization: the rows of the tables with real-valued activations."""

import torch
from torch import Tensor

from ebnet.nn.activations.base import ActivationQuantizer


class Real(ActivationQuantizer):
    """relu(x), as in BWN, TTQ and DSQ at 32 bits: a quantizer bends, so what stands in its place must too."""

    bits = 32

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x)
