"""Larq Compute Engine: Bi-Real Net 18 by its binary convolutions, the rest by the XNNPACK it is built with.

Its converter needs TensorFlow; its interpreter does not, and the file is written here, so only that part of the
package is loaded. Pictures are float32, channels last.
"""

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
from ai_edge_litert.schema_py_generated import ActivationFunctionType, Padding
from flatbuffers import flexbuffers

import bireal18
from peers.case import Case, Run
from peers.tflite import Graph, Value


def binary(case: Case) -> Run:
    """With `use_indirect_bgemm`, the faster of its kernels, and XNNPACK."""
    module = _module()
    graph = BinaryGraph(case.batch, case.calibration[:1])
    content = graph.file.content(graph.images.tensor, bireal18.write(case.model, graph, graph.images).tensor)
    interpreter = module.LiteInterpreter(content, case.threads, False, True, True)

    def call(images: np.ndarray) -> np.ndarray:
        return interpreter.predict([images])[0]

    return Run(call, channels_last=True)


class BinaryGraph(Graph):
    """float32, but for the bits that binary convolutions read, 32 channels to an int32; a bit is 1 for -1."""

    def binary_conv(self, x: Value, unit: bireal18.BinaryUnit) -> Value:
        *sides, channels = self.shape(x.example)
        bits = self.file.tensor((*sides, channels // 32), "int32")
        self.file.custom_op("LceQuantize", [x.tensor], bits, b"")
        negative = (unit.signs < 0).permute(0, 2, 3, 1).numpy()
        packed = np.packbits(negative, axis=-1, bitorder="little").view(np.int32)
        constants = [self.file.constant(each) for each in (packed, *(value.numpy() for value in unit.affine()))]
        y = self.value(unit.norm(unit.products(x.example)))
        inputs = [bits, *constants, -1]  # no thresholds: the output is real
        self.file.custom_op("LceBconv2d", inputs, y.tensor, _options(unit))
        return y


def _options(unit: bireal18.BinaryUnit) -> bytes:
    stride = unit.conv.stride[0]
    options = {
        "channels_in": unit.conv.in_channels,
        "dilation_height_factor": 1,
        "dilation_width_factor": 1,
        "fused_activation_function": ActivationFunctionType.NONE,
        "pad_values": 1,
        "padding": Padding.SAME,
        "stride_height": stride,
        "stride_width": stride,
    }
    builder = flexbuffers.Builder()
    with builder.Map():
        for name, value in options.items():
            builder.Int(name, value)
    return bytes(builder.Finish())


def _module() -> ModuleType:
    """The interpreter's own module."""
    if not np.__version__.startswith("1."):  # it would take the arrays of numpy 2 for empty ones
        raise ImportError(f"larq-compute-engine is built for numpy 1 (extra `larq`), here is numpy {np.__version__}")
    package = importlib.util.find_spec("larq_compute_engine")
    if package is None or package.submodule_search_locations is None:
        raise ImportError("larq_compute_engine is not installed (extra `larq`)")
    path = Path(package.submodule_search_locations[0], "tflite", "python", "interpreter_wrapper_lite.so")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
