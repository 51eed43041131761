"""ONNX Runtime: ResNet-18 as it is, and quantized by its own tools."""

import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from torch import Tensor, nn

import resnet18
from peers.case import Case, Run

OPSET, IR_VERSION = 17, 8


def fp32(case: Case) -> Run:
    return _run(fp32_file(case), case.threads)


def int8(case: Case) -> Run:
    return _run(int8_file(case), case.threads)


def fp32_file(case: Case) -> bytes:
    return _model(case).SerializeToString()


def int8_file(case: Case) -> bytes:
    """Static quantization: pairs of QuantizeLinear and DequantizeLinear, uint8 activations and int8 weights.

    The weights have a scale for each output channel, and 7 bits: without VNNI a product of 8 and 8 bits can overflow
    the 16 bits in which two of them are added.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "int8.onnx"
        quantize_static(
            _model(case),
            path,
            _Pictures(case.calibration),
            quant_format=QuantFormat.QDQ,
            per_channel=True,
            reduce_range=True,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
        )
        return path.read_bytes()


def _run(content: bytes, threads: int) -> Run:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])

    def call(images: np.ndarray) -> np.ndarray:
        return session.run(None, {"images": images})[0]

    return Run(call)


class _Pictures(CalibrationDataReader):
    """One at a time."""

    def __init__(self, images: Tensor) -> None:
        self.images = iter(images.split(1))

    def get_next(self) -> dict[str, np.ndarray] | None:
        image = next(self.images, None)
        return None if image is None else {"images": image.numpy()}


def _model(case: Case) -> onnx.ModelProto:
    graph = _Graph()
    logits = resnet18.write(case.model, graph, "images")
    side = case.calibration.shape[-1]
    proto = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "ResNet-18",
            [helper.make_tensor_value_info("images", TensorProto.FLOAT, ["batch", 3, side, side])],
            [helper.make_tensor_value_info(logits, TensorProto.FLOAT, ["batch", case.model[-1].out_features])],
            graph.initializers,
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
    )
    onnx.checker.check_model(proto)
    return proto


class _Graph:
    """Writes the layers of a network; a value is its name."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []

    def conv(self, x: str, layer: nn.Conv2d, relu: bool) -> str:
        pads = [*layer.padding, *layer.padding]
        y = self._node("Conv", [x, *self._weights(layer)], strides=layer.stride, pads=pads)
        return self._node("Relu", [y]) if relu else y

    def max_pool(self, x: str, layer: nn.MaxPool2d) -> str:
        sizes = {"kernel_shape": [layer.kernel_size] * 2, "strides": [layer.stride] * 2}
        return self._node("MaxPool", [x], pads=[layer.padding] * 4, **sizes)

    def add(self, a: str, b: str, relu: bool) -> str:
        y = self._node("Add", [a, b])
        return self._node("Relu", [y]) if relu else y

    def mean(self, x: str) -> str:
        return self._node("Flatten", [self._node("GlobalAveragePool", [x])])

    def linear(self, x: str, layer: nn.Linear) -> str:
        return self._node("Gemm", [x, *self._weights(layer)], transB=1)

    def _weights(self, layer: nn.Conv2d | nn.Linear) -> list[str]:
        names = []
        for value in (layer.weight, layer.bias):
            names.append(f"w{len(self.initializers)}")
            self.initializers.append(numpy_helper.from_array(value.detach().numpy(), names[-1]))
        return names

    def _node(self, kind: str, inputs: list[str], **attributes: object) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name
