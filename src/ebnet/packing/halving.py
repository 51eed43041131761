"""The real skip of a reduction cell as one op: a batch norm before a convolution that pads nothing is part of it.

conv(s x + b) = conv'(x) + shift, with weights w'_oi = w_oi s_i and shift_o = bias_o + sum_i,k w_oik b_i.
"""

import numpy as np
import torch
from torch import Tensor

from ebnet.models.cell import Halving
from ebnet.packing.folding import array, folded_norm


def fold(shortcut: Halving) -> dict[str, np.ndarray]:
    """The op's tensors."""
    assert shortcut.conv.bias is not None
    scale, before = folded_norm(shortcut.norm)
    weight = array(shortcut.conv.weight)
    shift = array(shortcut.conv.bias) + (weight.sum((2, 3)) @ before)
    return {"weight": weight * scale[:, None, None], "norm": np.stack((np.ones_like(shift), shift))}


def put(shortcut: Halving, weight: Tensor | None, norm: Tensor) -> None:
    """Give the skip the numbers of its op; without weights, those of the norm before it alone, which does nothing."""
    conv, before = shortcut.conv, shortcut.norm
    assert conv.bias is not None
    assert before.running_mean is not None
    assert before.running_var is not None
    with torch.no_grad():
        before.weight.fill_(1)
        before.bias.fill_(0)
        before.running_mean.fill_(0)
        before.running_var.fill_(1 - before.eps)
        if weight is not None:
            conv.weight.copy_(weight * norm[0].view(-1, 1, 1, 1))
            conv.bias.copy_(norm[1])
