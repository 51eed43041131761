"""LiteRT (TensorFlow Lite): ResNet-18 in int8, by its XNNPACK kernels.

Weights are symmetric with a scale for each output channel, activations have a scale and a zero point for each tensor,
from their least and greatest values on the calibration pictures: what its own converter makes. The file is written
here, so that no second framework is needed. Pictures go in and logits come out as float32, channels last.
"""

import numpy as np
from ai_edge_litert.interpreter import Interpreter
from torch import Tensor

import resnet18
from peers.case import Case, Run
from peers.tflite import Graph, Value


def int8(case: Case) -> Run:
    graph = Int8Graph(case.batch, case.calibration)
    logits = graph.dequantize(resnet18.write(case.model, graph, graph.quantize(graph.images)))
    content = graph.file.content(graph.images.tensor, logits)
    interpreter = Interpreter(model_content=content, num_threads=case.threads)
    interpreter.allocate_tensors()
    into, out = interpreter.get_input_details()[0]["index"], interpreter.get_output_details()[0]["index"]

    def call(images: np.ndarray) -> np.ndarray:
        interpreter.set_tensor(into, images)
        interpreter.invoke()
        return interpreter.get_tensor(out)

    return Run(call, channels_last=True)


class Int8Graph(Graph):
    """A value takes its scale from its example, but for the ops that keep their input's."""

    def quantize(self, x: Value) -> Value:
        y = self.value(x.example)
        self.file.op("QUANTIZE", [x.tensor], y.tensor, 1)
        return y

    def dequantize(self, x: Value) -> int:
        return self.file.op("DEQUANTIZE", [x.tensor], self.file.tensor(self.shape(x.example), "float32"), 2)

    def value(self, example: Tensor, like: Value | None = None) -> Value:
        low, high = min(example.min().item(), 0.0), max(example.max().item(), 0.0)
        scale = like.scale if like else (high - low) / 255
        zero = like.zero if like else round(-128 - low / scale)
        return Value(self.file.tensor(self.shape(example), "int8", scale, zero), example, scale, zero)

    def weights(self, weight: Tensor, bias: Tensor, x: Value) -> list[int]:
        flat = weight.detach().flatten(1).numpy()
        scale = np.abs(flat).max(1) / 127
        integers = np.round(flat / scale[:, None]).astype(np.int8).reshape(weight.shape)
        sums = np.round(bias.detach().numpy() / (x.scale * scale)).astype(np.int32)
        return [self.file.constant(integers, scale), self.file.constant(sums, x.scale * scale)]
