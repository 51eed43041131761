"""The skip of a reduction cell and the one op that it becomes."""

import torch
import torch.nn.functional as F
from torch import nn

from ebnet.models.cell import Halving
from ebnet.models.layer_layout import ConvLayout
from ebnet.packing import halving


def skip(seed: int) -> Halving:
    torch.manual_seed(seed)
    made = Halving(ConvLayout("1.0.shortcut", 5, 7, 2, 2, 1, (2,))).double().eval()
    nn.init.normal_(made.norm.running_mean)  # type: ignore[arg-type]
    nn.init.uniform_(made.norm.running_var, 0.5, 1.5)  # type: ignore[arg-type]
    nn.init.normal_(made.norm.weight)
    nn.init.normal_(made.norm.bias)
    return made


def test_a_norm_before_a_convolution_without_padding_is_part_of_it() -> None:
    made, x = skip(0), torch.randn(3, 5, 6, 4, dtype=torch.float64)
    op = {name: torch.from_numpy(values) for name, values in halving.fold(made).items()}
    scale, shift = op["norm"].view(2, -1, 1, 1)
    torch.testing.assert_close(F.conv2d(x, op["weight"], None, 2) * scale + shift, made(x))


def test_put_is_foldings_inverse_in_what_it_computes() -> None:
    made, other, x = skip(0), skip(1), torch.randn(3, 5, 6, 4, dtype=torch.float64)
    op = {name: torch.from_numpy(values) for name, values in halving.fold(made).items()}
    halving.put(other, op["weight"], op["norm"])
    torch.testing.assert_close(other(x), made(x))
    halving.put(made, None, op["norm"])
    torch.testing.assert_close(made.norm(x), x)
