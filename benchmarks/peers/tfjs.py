"""ResNet-18 as a list of layers that web_peers.mjs builds of TensorFlow.js's operations."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn

import resnet18


class _Graph:
    """Writes the layers of a network; a value is its number, 0 the images."""

    def __init__(self) -> None:
        self.layers: list[dict[str, Any]] = []
        self.weights: list[np.ndarray] = []

    def conv(self, x: int, layer: nn.Conv2d, relu: bool) -> int:
        weights = self._kept(layer.weight.permute(2, 3, 1, 0)), self._kept(layer.bias)
        return self._layer("conv", [x], weights, relu=relu, stride=layer.stride[0], pad=layer.padding[0])

    def max_pool(self, x: int, layer: nn.MaxPool2d) -> int:
        return self._layer("maxPool", [x], size=layer.kernel_size, stride=layer.stride, pad=layer.padding)

    def add(self, a: int, b: int, relu: bool) -> int:
        return self._layer("add", [a, b], relu=relu)

    def mean(self, x: int) -> int:
        return self._layer("mean", [x])

    def linear(self, x: int, layer: nn.Linear) -> int:
        return self._layer("linear", [x], (self._kept(layer.weight.T), self._kept(layer.bias)))

    def _layer(self, kind: str, inputs: list[int], weights: tuple[Any, ...] = (), **settings: Any) -> int:
        self.layers.append({"kind": kind, "inputs": inputs, "weights": weights, **settings})
        return len(self.layers)

    def _kept(self, value: Tensor) -> dict[str, Any]:
        array = np.ascontiguousarray(value.detach().numpy(), np.float32)
        self.weights.append(array)
        return {"shape": array.shape, "at": sum(weight.size for weight in self.weights) - array.size}


def write(model: nn.Sequential, folder: Path) -> None:
    """layers.json, and weights.bin with the numbers one after the other."""
    graph = _Graph()
    resnet18.write(model, graph, 0)
    (folder / "layers.json").write_text(json.dumps(graph.layers))
    (folder / "weights.bin").write_bytes(b"".join(weight.tobytes() for weight in graph.weights))
