"""TensorFlow Lite files, written op by op: the one format that LiteRT and Larq Compute Engine read."""

from collections.abc import Sequence
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

TYPES = {"float32": schema.TensorType.FLOAT32, "int32": schema.TensorType.INT32, "int8": schema.TensorType.INT8}


class File:
    """Tensors and ops of one graph. A tensor is named by its number."""

    def __init__(self) -> None:
        self.graph = schema.SubGraphT()
        self.graph.tensors, self.graph.operators = [], []
        self.buffers = [schema.BufferT()]
        self.codes: dict[tuple[int, str | None, int], int] = {}

    def tensor(
        self, shape: Sequence[int], kind: str, scale: Any = None, zero: int = 0, data: np.ndarray | None = None
    ) -> int:
        """A scale makes it quantized; several scales belong to its first dimension. Data makes it a constant."""
        tensor = schema.TensorT()
        tensor.shape, tensor.type, tensor.name = list(shape), TYPES[kind], f"t{len(self.graph.tensors)}"
        tensor.buffer = 0
        if scale is not None:
            tensor.quantization = schema.QuantizationParametersT()
            tensor.quantization.scale = np.atleast_1d(scale).astype(np.float32).tolist()
            tensor.quantization.zeroPoint = [zero] * len(tensor.quantization.scale)
        if data is not None:
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(np.ascontiguousarray(data).tobytes(), np.uint8)
            tensor.buffer = len(self.buffers)
            self.buffers.append(buffer)
        self.graph.tensors.append(tensor)
        return len(self.graph.tensors) - 1

    def constant(self, data: np.ndarray, scale: Any = None) -> int:
        return self.tensor(data.shape, str(data.dtype), scale, data=data)

    def op(self, name: str, inputs: Sequence[int], output: int, version: int, options: str = "", **values: Any) -> int:
        """A builtin op; `options` names its table in the schema, `values` are that table's fields."""
        operator = self._operator((getattr(schema.BuiltinOperator, name), None, version), inputs, output)
        if options:
            operator.builtinOptionsType = getattr(schema.BuiltinOptions, options)
            operator.builtinOptions = getattr(schema, f"{options}T")()
            for field, value in values.items():
                setattr(operator.builtinOptions, field, value)
        return output

    def custom_op(self, name: str, inputs: Sequence[int], output: int, options: bytes) -> int:
        operator = self._operator((schema.BuiltinOperator.CUSTOM, name, 1), inputs, output)
        operator.customOptions = np.frombuffer(options, np.uint8)
        return output

    def _operator(self, code: tuple[int, str | None, int], inputs: Sequence[int], output: int) -> Any:
        operator = schema.OperatorT()
        operator.opcodeIndex = self.codes.setdefault(code, len(self.codes))
        operator.inputs, operator.outputs = list(inputs), [output]
        self.graph.operators.append(operator)
        return operator

    def content(self, inputs: int, outputs: int) -> bytes:
        """The whole file."""
        self.graph.inputs, self.graph.outputs = [inputs], [outputs]
        model = schema.ModelT()
        model.version, model.subgraphs, model.buffers, model.operatorCodes = 3, [self.graph], self.buffers, []
        for builtin, custom, version in self.codes:
            code = schema.OperatorCodeT()
            code.builtinCode, code.customCode, code.version = builtin, custom, version
            code.deprecatedBuiltinCode = min(builtin, 127)  # where readers look for the ops of the first 127
            model.operatorCodes.append(code)
        builder = flatbuffers.Builder(1 << 20)
        builder.Finish(model.Pack(builder), b"TFL3")
        return bytes(builder.Output())
