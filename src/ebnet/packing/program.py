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
from ebnet.models.network import ExpertBinaryNetwork
from ebnet.models.shortcut import Projection
from ebnet.models.stem import CifarStem, Conv7x7Stem, ConvNorm, ImageNetStem
from ebnet.nn.expert_conv import ExpertBinaryConv2d
from ebnet.nn.precision import Precision

IMAGE = 0
"""The value that holds the input."""


class Program:
    """Ops and tensors of a network, in forward order.

    Attributes:
        ops: the flat list, ready for JSON.
        reals: float64 tensors by name.
        bits: packed expert weights by name.
        tensors, norms: where in the network those reals are: a parameter, or a batch norm that is folded.
        weights: where the packed weights are, as [experts, out, in/groups, kh, kw].
        layers: the real convolutions and linear maps, by the name of their op.
        in_channels: channels of the image.
    """

    def __init__(self, model: ExpertBinaryNetwork) -> None:
        _require_packable(model)
        self.ops: list[dict[str, Any]] = []
        self.reals: dict[str, np.ndarray] = {}
        self.bits: dict[str, np.ndarray] = {}
        self.tensors: dict[str, Tensor] = {}
        self.norms: dict[str, nn.BatchNorm2d] = {}
        self.weights: dict[str, Tensor] = {}
        self.layers: dict[str, nn.Conv2d | nn.Linear] = {}
        self.in_channels = model.config.in_channels
        value = self._stem(model.stem)
        for name, unit in model.units():
            value = self._unit(name, unit, value)
        value = self._op("global_pool", value)
        if model.head is not None:
            value = self._linear("head", model.head.linear, value, model.head.act)
        self._linear("classifier", model.classifier, value, None)

    def _op(self, kind: str, *inputs: int, **fields: Any) -> int:
        """Append an op; the value it makes."""
        self.ops.append({"op": kind, "in": list(inputs), **fields})
        return len(self.ops)

    def _real(self, name: str, tensor: Tensor) -> None:
        self.tensors[name], self.reals[name] = tensor, _array(tensor)

    def _norm(self, name: str, norm: nn.BatchNorm2d) -> None:
        self.norms[name], self.reals[name] = norm, folded(norm)

    def _stem(self, stem: nn.Module) -> int:
        if isinstance(stem, ImageNetStem):
            first = self._conv_norm("stem.conv1", stem.conv1, IMAGE)
            # The pool first: then the squeeze is the last to read conv1's map and is written over it.
            pooled = self._op("maxpool", first, kernel=3, stride=2, pad=1)
            convolved = self._conv_norm("stem.conv2", stem.conv2, self._conv_norm("stem.squeeze", stem.squeeze, first))
            return self._conv_norm("stem.mix", stem.mix, self._op("concat", convolved, pooled))
        if isinstance(stem, Conv7x7Stem):
            return self._op("maxpool", self._conv_norm("stem.conv", stem.conv, IMAGE), kernel=3, stride=2, pad=1)
        if isinstance(stem, CifarStem):
            return self._conv_norm("stem.conv", stem.conv, IMAGE)
        raise ConfigError(f"a stem of type {type(stem).__name__} cannot be packed")

    def _conv_norm(self, name: str, layer: ConvNorm, value: int) -> int:
        return self._conv(name, layer.conv, layer.norm, nn.ReLU(), value)

    def _conv(self, name: str, conv: nn.Conv2d, norm: nn.BatchNorm2d, act: nn.Module, value: int) -> int:
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

    def _unit(self, name: str, unit: BinaryUnit, value: int) -> int:
        skip = value
        if isinstance(unit.shortcut, Projection):
            skip = self._projection(f"{name}.shortcut", unit.shortcut, value)
        conv = unit.conv
        assert isinstance(conv, ExpertBinaryConv2d)
        self._norm(f"{name}.norm", unit.norm)
        self._real(f"{name}.scale", conv.scale)
        self.weights[f"{name}.bits"] = conv.expert_weights
        self.bits[f"{name}.bits"] = packed_signs(conv.expert_weights)
        fields: dict[str, Any] = {}
        if conv.gate is not None:
            fields["experts"] = conv.num_experts
            self._real(f"{name}.gate.weight", conv.gate.linear.weight)
            self._real(f"{name}.gate.bias", conv.gate.linear.bias)
        if conv.scaling is not None:
            fields["squeeze"] = conv.scaling.squeeze.out_features
            self._real(f"{name}.squeeze", conv.scaling.squeeze.weight)
            self._real(f"{name}.excite", conv.scaling.excite.weight)
        if conv.groups > 1:
            fields["groups"] = conv.groups
        return self._op(
            "binary",
            value,
            name=name,
            skip=skip,
            out=conv.out_channels,
            **_window(conv.kernel_size[0], conv.stride[0], conv.padding[0]),
            **fields,
            **self._activation(name, unit.act),
        )

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


def folded(norm: nn.BatchNorm2d) -> np.ndarray:
    """Batch norm in eval mode as [scale, shift] per channel."""
    assert norm.running_var is not None
    assert norm.running_mean is not None
    scale = _array(norm.weight) / np.sqrt(_array(norm.running_var) + norm.eps)
    return np.stack((scale, _array(norm.bias) - _array(norm.running_mean) * scale))


def packed_signs(weights: Tensor) -> np.ndarray:
    """[N, out, in/groups, kh, kw] -> bits [N, out, bytes]: per channel in the order ky, kx, in; LSB first; 1 = +1."""
    positive = (weights.detach().cpu() >= 0).permute(0, 1, 3, 4, 2).flatten(2)
    return np.packbits(positive.numpy(), axis=2, bitorder="little")


def _window(kernel: int, stride: int, pad: int) -> dict[str, int]:
    """The fields of a window; what is at its default is left out, to keep the header short."""
    return {"kernel": kernel} | ({"stride": stride} if stride > 1 else {}) | ({"pad": pad} if pad else {})


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().cpu().to(torch.float64).numpy()


def _require_packable(model: ExpertBinaryNetwork) -> None:
    """Only a Stage II expert network has bits to pack; say what the model has instead."""
    if not isinstance(model, ExpertBinaryNetwork):
        raise ConfigError(f"pack takes an ExpertBinaryNetwork, not {type(model).__name__}")
    if model.config.conv != "expert":
        raise ConfigError(
            f"conv={model.config.conv!r} mixes its experts' real weights for every image, which one-bit weights cannot "
            "store; only conv='expert' can be packed"
        )
    config = model.config
    signs = config.weights in ("learned-scale", "sign") and config.activations in ("sign", "sign-polynomial")
    if not signs or config.unit != "real-to-binary":
        raise ConfigError(
            f"weights={config.weights!r}, activations={config.activations!r}, unit={config.unit!r} cannot be packed: "
            "the file holds signs with the layer's own scale"
        )
    for name, layer in model.binary_layers().items():
        if layer.precision is not Precision.BINARY:
            raise ConfigError(
                f"layer {name} has precision {str(layer.precision)!r}: only a Stage II network (precision 'binary') "
                "has one-bit weights; train Stage II first, or call model.set_precision('binary')"
            )
        if layer.bias is not None:
            raise ConfigError(f"layer {name} has a bias, which the packed file has no place for")
