"""The layers of a network as ops of a TensorFlow Lite file, in float32, channels last."""

from dataclasses import dataclass

import numpy as np
from ai_edge_litert.schema_py_generated import ActivationFunctionType, Padding
from torch import Tensor, nn
from torch.nn import functional as F

from peers.flatbuffer import File


@dataclass(frozen=True)
class Value:
    """A tensor of the file, and what it is for some pictures."""

    tensor: int
    example: Tensor
    """Channels first, as torch has it."""
    scale: float = 0.0
    zero: int = 0


class Graph:
    """Writes layers for a batch; every value carries its example along."""

    def __init__(self, batch: int, images: Tensor) -> None:
        self.file, self.batch = File(), batch
        self.images = Value(self.file.tensor(self.shape(images), "float32"), images)

    def conv(self, x: Value, layer: nn.Conv2d, relu: bool) -> Value:
        example = layer(x.example)
        same = layer.stride == (1, 1)  # with a stride, the file's own padding is more at the right and the bottom
        x = x if same else self._pad(x, layer.padding[0])
        y = self.value(example.relu() if relu else example)
        self.file.op(
            "CONV_2D",
            [x.tensor, *self.weights(layer.weight.permute(0, 2, 3, 1), layer.bias, x)],
            y.tensor,
            3,
            "Conv2DOptions",
            padding=Padding.SAME if same else Padding.VALID,
            strideH=layer.stride[0],
            strideW=layer.stride[1],
            fusedActivationFunction=_activation(relu),
        )
        return y

    def max_pool(self, x: Value, layer: nn.MaxPool2d) -> Value:
        """Padded with 0, as is right after a ReLU, or by rounding up."""
        y = self.value(layer(x.example), like=x)
        padding = Padding.SAME if layer.ceil_mode else Padding.VALID
        return self._pool("MAX_POOL_2D", self._pad(x, layer.padding), y, layer.kernel_size, layer.stride, padding)

    def average_pool(self, x: Value, size: int) -> Value:
        y = self.value(F.avg_pool2d(x.example, size), like=x)
        return self._pool("AVERAGE_POOL_2D", x, y, size, size, Padding.VALID)

    def add(self, a: Value, b: Value, relu: bool) -> Value:
        total = a.example + b.example
        y = self.value(total.relu() if relu else total)
        activation = _activation(relu)
        self.file.op("ADD", [a.tensor, b.tensor], y.tensor, 2, "AddOptions", fusedActivationFunction=activation)
        return y

    def mean(self, x: Value) -> Value:
        y = self.value(x.example.mean((2, 3)))
        axes = self.file.constant(np.array([1, 2], np.int32))
        self.file.op("MEAN", [x.tensor, axes], y.tensor, 2, "ReducerOptions", keepDims=False)
        return y

    def linear(self, x: Value, layer: nn.Linear) -> Value:
        y = self.value(layer(x.example))
        inputs = [x.tensor, *self.weights(layer.weight, layer.bias, x)]
        self.file.op("FULLY_CONNECTED", inputs, y.tensor, 5, "FullyConnectedOptions")
        return y

    def value(self, example: Tensor, like: Value | None = None) -> Value:
        """A new one; `like` is the value whose kind the op leaves as it is."""
        return Value(self.file.tensor(self.shape(example), "float32"), example)

    def weights(self, weight: Tensor, bias: Tensor, x: Value) -> list[int]:
        """Constants, for a layer that reads x; output channels come first."""
        return [self.file.constant(each.detach().numpy()) for each in (weight, bias)]

    def shape(self, example: Tensor) -> tuple[int, ...]:
        """Of a batch of such examples, channels last."""
        channels, *sides = example.shape[1:]
        return (self.batch, *sides, channels)

    def _pad(self, x: Value, margin: int) -> Value:
        if margin == 0:
            return x
        y = self.value(F.pad(x.example, (margin,) * 4), like=x)
        around = self.file.constant(np.array([[0, 0], [margin] * 2, [margin] * 2, [0, 0]], np.int32))
        self.file.op("PAD", [x.tensor, around], y.tensor, 2, "PadOptions")
        return y

    def _pool(self, name: str, x: Value, y: Value, size: int, stride: int, padding: int) -> Value:
        window = {"filterHeight": size, "filterWidth": size, "strideH": stride, "strideW": stride}
        self.file.op(name, [x.tensor], y.tensor, 2, "Pool2DOptions", padding=padding, **window)
        return y


def _activation(relu: bool) -> int:
    return ActivationFunctionType.RELU if relu else ActivationFunctionType.NONE
