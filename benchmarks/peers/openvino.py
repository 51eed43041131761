"""OpenVINO: ResNet-18 as it is and quantized by NNCF, and Bi-Real Net 18 by its BinaryConvolution."""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import openvino
from openvino import opset13 as ops
from torch import Tensor, nn

import bireal18
import resnet18
from peers.case import Case, Run


def fp32(case: Case) -> Run:
    return _run(_model(case, resnet18.write), case.threads)


def int8(case: Case) -> Run:
    sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]  # a benchmark reports to nobody
    import nncf

    nncf.set_log_level(40)
    pictures = nncf.Dataset(case.calibration.split(1), Tensor.numpy)
    one = Case(case.model, case.calibration, 1, case.threads)
    preset = nncf.QuantizationPreset.PERFORMANCE
    model = nncf.quantize(_model(one, resnet18.write), pictures, preset=preset, subset_size=len(case.calibration))
    model.reshape([case.batch, *case.calibration.shape[1:]])
    return _run(model, case.threads)


def binary(case: Case) -> Run:
    return _run(_model(case, bireal18.write), case.threads)


def _run(model: openvino.Model, threads: int) -> Run:
    settings = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32"}
    request = openvino.Core().compile_model(model, "CPU", settings).create_infer_request()

    def call(images: np.ndarray) -> np.ndarray:
        return request.infer([images], share_inputs=True)[0]

    return Run(call)


def _model(case: Case, write: Callable[[nn.Module, Any, Any], Any]) -> openvino.Model:
    images = ops.parameter([case.batch, *case.calibration.shape[1:]], np.float32)
    return openvino.Model([write(case.model, _Graph(), images)], [images])


class _Graph:
    """Makes the layers of a network; a value is its node."""

    def conv(self, x: Any, layer: nn.Conv2d, relu: bool) -> Any:
        y = ops.convolution(x, _array(layer.weight), layer.stride, layer.padding, layer.padding, [1, 1])
        y = ops.add(y, _per_channel(layer.bias))
        return ops.relu(y) if relu else y

    def max_pool(self, x: Any, layer: nn.MaxPool2d) -> Any:
        before = [layer.padding] * 2
        after = [1, 1] if layer.ceil_mode else before
        return ops.max_pool(x, [layer.stride] * 2, [1, 1], before, after, [layer.kernel_size] * 2).output(0)

    def average_pool(self, x: Any, size: int) -> Any:
        return ops.avg_pool(x, [size] * 2, [0, 0], [0, 0], [size] * 2, True)

    def add(self, a: Any, b: Any, relu: bool) -> Any:
        return ops.relu(ops.add(a, b)) if relu else ops.add(a, b)

    def mean(self, x: Any) -> Any:
        return ops.reduce_mean(x, np.array([2, 3]), keep_dims=False)

    def linear(self, x: Any, layer: nn.Linear) -> Any:
        return ops.add(ops.matmul(x, _array(layer.weight), False, True), _array(layer.bias)[None])

    def binary_conv(self, x: Any, unit: bireal18.BinaryUnit) -> Any:
        """The bit of x is 1 above the threshold, just below 0 since sign(0) = +1; weights are packed from bit 0."""
        threshold = np.full((1, 1, 1, 1), -np.finfo(np.float32).tiny, np.float32)
        low, high = np.zeros((1, 1, 1, 1), np.float32), np.ones((1, 1, 1, 1), np.float32)
        bits = ops.fake_quantize(x, threshold, threshold, low, high, 2)
        signs = _array(unit.signs) > 0
        packed = np.packbits(signs.reshape(-1), bitorder="little")
        weights = openvino.op.Constant(openvino.Tensor(packed, list(signs.shape), openvino.Type.u1), False)
        before, after = ([margin] * 2 for margin in unit.padding)
        y = ops.binary_convolution(
            bits, weights, unit.conv.stride, before, after, [1, 1], "xnor-popcount", pad_value=1.0
        )
        scale, bias = unit.affine()
        return ops.add(ops.multiply(y, _per_channel(scale)), _per_channel(bias))


def _array(value: Tensor) -> np.ndarray:
    return value.detach().numpy()


def _per_channel(value: Tensor) -> np.ndarray:
    return _array(value)[None, :, None, None]
