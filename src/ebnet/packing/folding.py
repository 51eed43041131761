"""Units of other papers as binary ops of the packed file: scales, thresholds and batch norms folded into few numbers.

With weights sum_i alpha_i B_i and activations sum_j beta_j sign(x + v_j), the convolution is the sum over all pairs of
beta_j alpha_i conv(sign(x + v_j), B_i), because a convolution is linear and pads each binary map with zeros. Each pair
is one op, and they add up through their skips. A batch norm after the convolution multiplies the scales and shifts the
result.
"""

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from ebnet.errors import ConfigError
from ebnet.models.block import BinaryUnit
from ebnet.nn.activations import Sign
from ebnet.nn.expert_conv import ExpertBinaryConv2d
from ebnet.nn.expert_function import expert_convolution
from ebnet.nn.rprelu import RPReLU
from ebnet.nn.sign import hard_sign
from ebnet.nn.weights import PlainSign


@dataclass
class FoldedOp:
    """A binary op's numbers, in float64, under the names they have in the file; `signs` [N, out, in / groups, k, k]."""

    signs: Tensor
    reals: dict[str, np.ndarray] = field(default_factory=dict)


def is_plain(unit: BinaryUnit) -> bool:
    """Whether the network's own numbers are the op's: signs with the layer's scale, batch norm first."""
    conv, kind = unit.conv, unit.kind
    signs = isinstance(conv.weight_quantizer, PlainSign) and isinstance(conv.input_quantizer, Sign)
    return signs and kind.norm_first and not kind.activation_last and conv.orientations == 1


def fold(name: str, unit: BinaryUnit) -> list[FoldedOp]:
    """The ops of a unit, in the order in which they add up."""
    conv, kind = unit.conv, unit.kind
    assert isinstance(conv, ExpertBinaryConv2d)
    try:
        inputs, weights = conv.input_quantizer.bases(), conv.weight_quantizer.bases(conv.filters.detach())
    except ConfigError as error:
        raise ConfigError(f"layer {name} cannot be packed: {error}; `ebnet export-onnx` writes it for others") from None
    if len(inputs) * len(weights) > 1 and kind.activation != "none" and not kind.activation_last:
        raise ConfigError(f"layer {name} cannot be packed: an activation between several bases and their skip")
    norm = folded_norm(unit.norm)
    before = norm if kind.norm_first else np.stack((np.ones(conv.in_channels), np.zeros(conv.in_channels)))
    after_scale = np.ones(conv.out_channels) if kind.norm_first else norm[0]
    ops = []
    for beta, threshold in inputs:
        shift = np.broadcast_to(array(threshold), (conv.in_channels,))
        for alpha, base in weights:
            rows = array(alpha).reshape(conv.num_experts, conv.out_channels)
            scale = array(beta) * rows * array(conv.scale) * after_scale
            scale = scale[0] if (scale == scale[0]).all() else scale
            op = FoldedOp(base.detach().unflatten(0, (conv.num_experts, conv.out_channels)))
            op.reals |= {"norm": before + np.stack((np.zeros_like(shift), shift)), "scale": scale}
            op.reals |= _routing(name, conv, shift)
            ops.append(op)
    ops[-1].reals |= _finish(unit, None if kind.norm_first else norm[1])
    return ops


def has_bases(unit: BinaryUnit) -> bool:
    """Whether its weights and activations are sums of signs."""
    try:
        unit.conv.input_quantizer.bases()
        unit.conv.weight_quantizer.bases(unit.conv.filters.detach())
    except ConfigError:
        return False
    return True


def quantized(name: str, unit: BinaryUnit) -> dict[str, np.ndarray]:
    """The numbers of a unit whose weights or activations are no signs, for graphs that other runtimes execute."""
    conv, kind = unit.conv, unit.kind
    assert isinstance(conv, ExpertBinaryConv2d)
    norm = folded_norm(unit.norm)
    reals = _routing(name, conv, np.zeros(conv.in_channels))
    reals |= _finish(unit, None if kind.norm_first else norm[1])
    reals["norm"] = norm if kind.norm_first else np.stack((np.ones(conv.in_channels), np.zeros(conv.in_channels)))
    reals["scale"] = array(conv.scale) * (1.0 if kind.norm_first else norm[0])
    reals["weight"] = array(conv.used_weight.unflatten(0, (conv.num_experts, conv.out_channels)))
    return reals


def _routing(name: str, conv: ExpertBinaryConv2d, shift: np.ndarray) -> dict[str, np.ndarray]:
    """Gate and data-driven scaling see the mean of the op's input, which has the threshold in it; they must not."""
    reals: dict[str, np.ndarray] = {}
    if conv.gate is not None:
        weight = array(conv.gate.linear.weight)
        reals |= {"gate.weight": weight, "gate.bias": array(conv.gate.linear.bias) - weight @ shift}
    if conv.scaling is not None:
        if shift.any():
            raise ConfigError(f"layer {name} cannot be packed: data-driven scaling beside learned thresholds")
        reals |= {"squeeze": array(conv.scaling.squeeze.weight), "excite": array(conv.scaling.excite.weight)}
    return reals


def _finish(unit: BinaryUnit, shift: np.ndarray | None) -> dict[str, np.ndarray]:
    """What comes after the sum: shifts and the activation."""
    reals = {} if shift is None else {"shift": shift}
    act = unit.act
    if isinstance(act, RPReLU):
        shift = np.zeros(len(act.gamma)) if shift is None else shift
        reals |= {"shift": shift - array(act.gamma), "slope": array(act.weight), "after": array(act.zeta)}
    elif isinstance(act, nn.PReLU):
        reals |= {"slope": array(act.weight)}
    return reals


class FoldedUnit(BinaryUnit):
    """A unit that computes with its ops' numbers, as the engine does: the reference of a packed file.

    Attributes:
        before_sign: of the last forward pass, each op's input before its sign.
        gate_values: and its gate's values, where it has one.
        chosen: and the experts.
    """

    def __init__(self, unit: BinaryUnit, ops: list[FoldedOp]) -> None:
        nn.Module.__init__(self)
        self.kind, self.conv, self.norm, self.act = unit.kind, unit.conv, unit.norm, unit.act
        self.shortcut, self.beside = unit.shortcut, unit.beside
        self.ops = ops
        self.refusal = None
        self.before_sign: list[Tensor] = []
        self.gate_values: list[Tensor | None] = []
        self.chosen: list[Tensor] = []

    def forward(self, x: Tensor, beside: Tensor | None) -> Tensor:
        self.before_sign, self.gate_values, self.chosen = [], [], []
        skip = None if self.shortcut is None else self.shortcut(beside if self.beside else x)
        last = len(self.ops) - 1
        y = skip if last > 0 or self.kind.activation_last else None
        for number, op in enumerate(self.ops):
            part = self._convolved(op, x)
            if "shift" in op.reals:
                part = part + _map(op, "shift", x)
            y = part if y is None else part + y
            if number == last and "slope" in op.reals:
                y = torch.where(y < 0, _map(op, "slope", x) * y, y)
            elif number == last and isinstance(self.act, nn.ReLU):
                y = torch.relu(y)
        assert y is not None
        if skip is not None and last == 0 and not self.kind.activation_last:
            y = y + skip
        return y + _map(self.ops[-1], "after", x) if "after" in self.ops[-1].reals else y

    def _convolved(self, op: FoldedOp, x: Tensor) -> Tensor:
        numbers = {name: torch.as_tensor(values).to(x.dtype) for name, values in op.reals.items()}
        scale, shift = numbers["norm"].view(2, -1, 1, 1)
        before = x * scale + shift
        mean = before.mean((2, 3))
        chosen = torch.zeros(len(x), dtype=torch.int64)
        values = None
        if "gate.weight" in numbers:
            values = mean @ numbers["gate.weight"].T + numbers["gate.bias"]
            chosen = values.argmax(1)
        self.before_sign.append(before)
        self.gate_values.append(values)
        self.chosen.append(chosen)
        one_hot = nn.functional.one_hot(chosen, len(op.signs)).to(x.dtype)
        weights = hard_sign(op.signs).to(x.dtype)
        y = expert_convolution(hard_sign(before), weights, one_hot, self.conv.geometry, None)
        factor = numbers["scale"][chosen] if numbers["scale"].ndim == 2 else numbers["scale"]
        if "squeeze" in numbers:
            factor = factor * torch.sigmoid(torch.relu(mean @ numbers["squeeze"].T) @ numbers["excite"].T)
        return y * factor.view(-1, y.shape[1], 1, 1)


def _map(op: FoldedOp, name: str, like: Tensor) -> Tensor:
    return torch.as_tensor(op.reals[name]).to(like.dtype).view(-1, 1, 1)


def folded_norm(norm: nn.BatchNorm2d) -> np.ndarray:
    """Batch norm in eval mode as [scale, shift] per channel."""
    assert norm.running_var is not None
    assert norm.running_mean is not None
    scale = array(norm.weight) / np.sqrt(array(norm.running_var) + norm.eps)
    return np.stack((scale, array(norm.bias) - array(norm.running_mean) * scale))


def array(tensor: Tensor) -> np.ndarray:
    """A tensor's numbers in float64."""
    return tensor.detach().cpu().to(torch.float64).numpy()
