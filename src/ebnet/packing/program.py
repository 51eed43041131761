"""The module tree as the packed file's program: a flat list of fused ops and the tensors they name.

Op i makes value i + 1 from earlier values; value 0 is the image and the last value the logits. docs/format.md is the
specification; native/engine/program.cpp verifies it.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ebnet.errors import ConfigError
from ebnet.models.block import BinaryUnit
from ebnet.models.cell import Cell, Halving
from ebnet.models.group import GroupBlock
from ebnet.models.network import ExpertBinaryNetwork
from ebnet.models.shortcut import Projection
from ebnet.models.stem import CifarStem, Conv3x3Stem, Conv7x7Stem, ConvNorm, ImageNetStem
from ebnet.nn.activations import ActivationQuantizer
from ebnet.nn.expert_conv import ExpertBinaryConv2d
from ebnet.nn.precision import Precision
from ebnet.packing import halving, votes
from ebnet.packing.folding import array, fold, folded_norm, has_bases, is_plain, quantized

IMAGE = 0
"""The value that holds the input."""
MOST_JOINED = 16
"""Inputs of a concatenation or a sum."""


class Program:
    """Ops and tensors of a network, in forward order.

    Attributes:
        ops: the flat list, ready for JSON.
        reals: float64 tensors by name.
        bits: packed expert weights by name.
        tensors, norms: where in the network those reals are: a parameter, or a batch norm that is folded.
        weights: where the packed weights are, as [experts, out, in/groups, kh, kw].
        layers: the real convolutions and linear maps, by the name of their op.
        halvings: real skips of reduction cells, by the name of the op that one is folded into.
        classifiers: of an ensemble's members, which the op `classifier` joins; empty for one network.
        gates, scales: of blocks of branches, by the index of the op `sum` whose factors they are.
        folded: the units whose numbers are folded, by name, with the names of their ops.
        in_channels: channels of the image.
        quantizers: those of ops `quantized`, by name.

    Args:
        other_bits: take units of weights and activations that are no signs, as ops `quantized`; a packed file has none.
    """

    def __init__(self, model: ExpertBinaryNetwork, other_bits: bool = False) -> None:
        _require_packable(model)
        self.other_bits = other_bits
        self.quantizers: dict[str, ActivationQuantizer] = {}
        self.ops: list[dict[str, Any]] = []
        self.reals: dict[str, np.ndarray] = {}
        self.bits: dict[str, np.ndarray] = {}
        self.tensors: dict[str, Tensor] = {}
        self.norms: dict[str, nn.BatchNorm2d] = {}
        self.weights: dict[str, Tensor] = {}
        self.layers: dict[str, nn.Conv2d | nn.Linear] = {}
        self.folded: dict[str, tuple[BinaryUnit, list[str]]] = {}
        self.halvings: dict[str, Halving] = {}
        self.classifiers: list[nn.Linear] = []
        self.gates: list[tuple[int, nn.Parameter]] = []
        self.scales: list[tuple[int, nn.Parameter]] = []
        self.in_channels = model.config.in_channels
        features = [self._body(prefix, member) for prefix, member in model.named_members()]
        if len(features) == 1:
            value = self._op("global_pool", features[0])
            if model.head is not None:
                value = self._linear("head", model.head.linear, value, model.head.act)
            self._linear("classifier", model.classifier, value, None)
        else:
            self._vote(model, self._op("global_pool", self._op("concat", *features)))

    def _body(self, prefix: str, model: ExpertBinaryNetwork) -> int:
        """From the image to the map before the pool."""
        older, value = self._stem(f"{prefix}stem", model.stem)
        branches: list[int] = []
        for block, named in model.named_blocks():
            if isinstance(block, Cell):
                older, value = value, self._cell(prefix, block, named[0], older, value)
                continue
            inputs = [value] * len(named)
            if isinstance(block, GroupBlock) and block.gate is not None:
                inputs = [self._gated(block.gate, one, value) for one in branches]
            branches = [self._branch(prefix, units, one) for units, one in zip(named, inputs, strict=True)]
            value = self._fused(block.scale, branches) if isinstance(block, GroupBlock) else branches[0]
        return value

    def _cell(self, prefix: str, cell: Cell, units: list[tuple[str, BinaryUnit]], older: int, newer: int) -> int:
        def unit(number: int, value: int, beside: int | None) -> int:
            name, layers = units[number]
            return self._unit(prefix + name, layers, value, beside)

        def pool(value: int) -> int:
            return self._op("maxpool", value, **_window(3, cell.layout.stride, 1))

        nodes = cell.layout.run((older, newer), unit, pool, self._added)
        joined = self._op("concat", *nodes)
        if isinstance(cell.shortcut, Halving):
            assert cell.layout.projection is not None
            newer = self._halved(prefix + cell.layout.projection.name, cell.shortcut, newer)
        return joined if cell.shortcut is None else self._added(joined, newer)

    def _added(self, value: int, other: int) -> int:
        return self._op("sum", value, other, factors=[1.0, 1.0])

    def _halved(self, name: str, shortcut: Halving, value: int) -> int:
        self.layers[name], self.halvings[name] = shortcut.conv, shortcut
        self.reals |= {f"{name}.{kind}": values for kind, values in halving.fold(shortcut).items()}
        return self._op("conv", value, name=name, out=shortcut.conv.out_channels, **_window(2, 2, 0))

    def _branch(self, prefix: str, units: list[tuple[str, BinaryUnit]], value: int) -> int:
        first = value
        for name, unit in units:
            value = self._unit(prefix + name, unit, value, first)
        return value

    def _gated(self, gate: nn.Parameter, branch: int, fused: int) -> int:
        own = float(torch.sigmoid(gate.detach()))
        self.gates.append((len(self.ops), gate))
        return self._op("sum", branch, fused, factors=[own, 1 - own])

    def _fused(self, scale: nn.Parameter, branches: list[int]) -> int:
        self.scales.append((len(self.ops), scale))
        return self._op("sum", *branches, factors=scale.detach().tolist())

    def _vote(self, model: ExpertBinaryNetwork, value: int) -> None:
        """The mean of the members' logits is one linear map of all their features."""
        self.classifiers = [member.classifier for member in model.members]
        self.reals |= votes.joined(self.classifiers)
        self._op("linear", value, name="classifier", out=model.classifier.out_features)

    def _op(self, kind: str, *inputs: int, **fields: Any) -> int:
        """Append an op; the value it makes."""
        self.ops.append({"op": kind, "in": list(inputs), **fields})
        return len(self.ops)

    def _real(self, name: str, tensor: Tensor) -> None:
        self.tensors[name], self.reals[name] = tensor, array(tensor)

    def _norm(self, name: str, norm: nn.BatchNorm2d) -> None:
        self.norms[name], self.reals[name] = norm, folded_norm(norm)

    def _stem(self, name: str, stem: nn.Module) -> tuple[int, int]:
        """Its last two maps, which are the same where nobody reads the one before."""
        if isinstance(stem, Conv3x3Stem):
            older = self._conv_norm(f"{name}.conv2", stem.conv2, self._conv_norm(f"{name}.conv1", stem.conv1, IMAGE))
            return older, self._conv_norm(f"{name}.conv3", stem.conv3, older)
        value = self._one_map(name, stem)
        return value, value

    def _one_map(self, name: str, stem: nn.Module) -> int:
        if isinstance(stem, ImageNetStem):
            first = self._conv_norm(f"{name}.conv1", stem.conv1, IMAGE)
            # The pool first: then the squeeze is the last to read conv1's map and is written over it.
            pooled = self._op("maxpool", first, kernel=3, stride=2, pad=1)
            squeezed = self._conv_norm(f"{name}.squeeze", stem.squeeze, first)
            convolved = self._conv_norm(f"{name}.conv2", stem.conv2, squeezed)
            return self._conv_norm(f"{name}.mix", stem.mix, self._op("concat", convolved, pooled))
        if isinstance(stem, Conv7x7Stem):
            return self._op("maxpool", self._conv_norm(f"{name}.conv", stem.conv, IMAGE), kernel=3, stride=2, pad=1)
        if isinstance(stem, CifarStem):
            return self._conv_norm(f"{name}.conv", stem.conv, IMAGE)
        raise ConfigError(f"a stem of type {type(stem).__name__} cannot be packed")

    def _conv_norm(self, name: str, layer: ConvNorm, value: int) -> int:
        return self._conv(name, layer.conv, layer.norm, layer.act, value)

    def _conv(self, name: str, conv: nn.Conv2d, norm: nn.BatchNorm2d, act: nn.Module | None, value: int) -> int:
        self.layers[name] = conv
        self._real(f"{name}.weight", conv.weight)
        self._norm(f"{name}.norm", norm)
        return self._op(
            "conv",
            value,
            name=name,
            out=conv.out_channels,
            **_window(conv.kernel_size[0], conv.stride[0], int(conv.padding[0])),
            **self._activation(name, act),
        )

    def _projection(self, name: str, shortcut: Projection, value: int) -> int:
        if isinstance(shortcut.pool, nn.AvgPool2d):
            stride = int(shortcut.pool.kernel_size)  # type: ignore[arg-type]
            value = self._op("avgpool", value, kernel=stride, stride=stride, ceil=True)
        value = self._conv(f"{name}.conv1", shortcut.conv1, shortcut.norm1, shortcut.act1, value)
        if shortcut.decomposed:
            value = self._conv(f"{name}.conv2", shortcut.conv2, shortcut.norm2, shortcut.act2, value)
        return value

    def _unit(self, name: str, unit: BinaryUnit, value: int, beside: int | None) -> int:
        """The ops of a unit that reads a value, and some units' skips another."""
        source = beside if unit.beside else value
        skip: int | None = None
        if isinstance(unit.shortcut, Projection):
            assert source is not None
            skip = self._projection(f"{name}.shortcut", unit.shortcut, source)
        elif unit.shortcut is not None:
            skip = source
        if is_plain(unit):
            return self._plain(name, unit, value, skip)
        if self.other_bits and not has_bases(unit):
            return self._quantized(name, unit, value, skip)
        return self._fold(name, unit, value, skip)

    def _plain(self, name: str, unit: BinaryUnit, value: int, skip: int | None) -> int:
        conv = unit.conv
        assert isinstance(conv, ExpertBinaryConv2d)
        self._norm(f"{name}.norm", unit.norm)
        self._real(f"{name}.scale", conv.scale)
        self.weights[f"{name}.bits"] = conv.expert_weights
        self.bits[f"{name}.bits"] = packed_signs(conv.expert_weights)
        if conv.gate is not None:
            self._real(f"{name}.gate.weight", conv.gate.linear.weight)
            self._real(f"{name}.gate.bias", conv.gate.linear.bias)
        if conv.scaling is not None:
            self._real(f"{name}.squeeze", conv.scaling.squeeze.weight)
            self._real(f"{name}.excite", conv.scaling.excite.weight)
        return self._binary(name, conv, value, skip, **self._activation(name, unit.act))

    def _fold(self, name: str, unit: BinaryUnit, value: int, skip: int | None) -> int:
        """A unit whose numbers are not the network's own: an op for each pair of bases, adding up through the skips."""
        conv, ops = unit.conv, fold(name, unit)
        assert isinstance(conv, ExpertBinaryConv2d)
        names = [name] if len(ops) == 1 else [f"{name}.{number}" for number in range(len(ops))]
        self.folded[name] = unit, names
        for own, op in zip(names, ops, strict=True):
            self.bits[f"{own}.bits"] = packed_signs(op.signs)
            skip = self._binary(own, conv, value, skip, **self._numbers(own, unit, op.reals))
        assert skip is not None
        return skip

    def _quantized(self, name: str, unit: BinaryUnit, value: int, skip: int | None) -> int:
        conv = unit.conv
        assert isinstance(conv, ExpertBinaryConv2d)
        self.quantizers[name] = conv.input_quantizer
        fields = self._numbers(name, unit, quantized(name, unit))
        return self._binary(name, conv, value, skip, "quantized", **fields)

    def _numbers(self, name: str, unit: BinaryUnit, reals: dict[str, np.ndarray]) -> dict[str, Any]:
        """Keep an op's numbers; the fields that say which there are."""
        self.reals |= {f"{name}.{kind}": values for kind, values in reals.items()}
        fields: dict[str, Any] = {kind: True for kind in ("shift", "after") if kind in reals}
        fields |= {"expert_scales": True} if reals["scale"].ndim == 2 else {}
        if isinstance(unit.act, nn.ReLU):
            fields |= self._activation(name, unit.act)
        if "slope" in reals:
            fields |= {"act": "prelu"} | ({"act_last": True} if unit.kind.activation_last else {})
        return fields

    def _binary(
        self, name: str, conv: ExpertBinaryConv2d, value: int, skip: int | None, kind: str = "binary", **fields: Any
    ) -> int:
        skips = {} if skip is None else {"skip": skip}
        routing: dict[str, Any] = {}
        if conv.gate is not None:
            routing["experts"] = conv.num_experts
        if conv.scaling is not None:
            routing["squeeze"] = conv.scaling.squeeze.out_features
        if conv.groups > 1:
            routing["groups"] = conv.groups
        window = _window(conv.kernel_size[0], conv.stride[0], conv.padding[0], conv.dilation[0])
        return self._op(kind, value, name=name, **skips, out=conv.out_channels, **window, **routing, **fields)

    def _linear(self, name: str, layer: nn.Linear, value: int, act: nn.Module | None) -> int:
        self.layers[name] = layer
        self._real(f"{name}.weight", layer.weight)
        self._real(f"{name}.bias", layer.bias)
        return self._op("linear", value, name=name, out=layer.out_features, **self._activation(name, act))

    def _activation(self, name: str, act: nn.Module | None) -> dict[str, str]:
        if act is None or isinstance(act, nn.Identity):
            return {}
        if isinstance(act, nn.ReLU):
            return {"act": "relu"}
        if isinstance(act, nn.PReLU):
            self._real(f"{name}.slope", act.weight)
            return {"act": "prelu"}
        raise ConfigError(f"{name}: an activation of type {type(act).__name__} cannot be packed")


def packed_signs(weights: Tensor) -> np.ndarray:
    """[N, out, in/groups, kh, kw] -> bits [N, out, bytes]: per channel in the order ky, kx, in; LSB first; 1 = +1."""
    positive = (weights.detach().cpu() >= 0).permute(0, 1, 3, 4, 2).flatten(2)
    return np.packbits(positive.numpy(), axis=2, bitorder="little")


def _window(kernel: int, stride: int, pad: int, dilation: int = 1) -> dict[str, int]:
    """The fields of a window; what is at its default is left out, to keep the header short."""
    given = {"stride": (stride, 1), "pad": (pad, 0), "dilation": (dilation, 1)}
    return {"kernel": kernel} | {name: value for name, (value, default) in given.items() if value != default}


def _require_packable(model: ExpertBinaryNetwork) -> None:
    """Only a Stage II expert network has bits to pack; say what the model has instead."""
    if not isinstance(model, ExpertBinaryNetwork):
        raise ConfigError(f"pack takes an ExpertBinaryNetwork, not {type(model).__name__}")
    if model.config.conv != "expert":
        raise ConfigError(
            f"conv={model.config.conv!r} mixes its experts' real weights for every image, which one-bit weights cannot "
            "store; only conv='expert' can be packed"
        )
    if model.config.members > 1 and model.head is not None:
        raise ConfigError("an ensemble with head_width cannot be packed: members' features are joined before the pool")
    if max(model.config.members, model.config.branches) > MOST_JOINED:
        raise ConfigError(f"the packed file joins at most {MOST_JOINED} members, and as many branches")
    for name, layer in model.binary_layers().items():
        if layer.precision is not Precision.BINARY:
            raise ConfigError(
                f"layer {name} has precision {str(layer.precision)!r}: only a Stage II network (precision 'binary') "
                "has one-bit weights; train Stage II first, or call model.set_precision('binary')"
            )
        if layer.bias is not None:
            raise ConfigError(f"layer {name} has a bias, which the packed file has no place for")
