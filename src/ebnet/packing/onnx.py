"""A Stage II network as an ONNX graph, for other runtimes: dynamic batch and size, opset 17.

It is built from the packed file's own program, so both exports mean the same ops; weights and activations of more than
a bit, which that file has not, are ops of their own. sign is Where(x >= 0, 1, -1). Every expert's convolution runs and
GatherND picks the chosen one by index: a graph with a dynamic batch cannot choose weights per sample in one
convolution, whose groups are fixed. So the ONNX file is portable, not fast; the engine is.
"""

from pathlib import Path
from typing import Any

import numpy as np

from ebnet.files import require_folder, write_atomically
from ebnet.models.network import ExpertBinaryNetwork
from ebnet.nn.activations import ActivationQuantizer, MultiBaseSign, Real, ShiftedSign, Sign
from ebnet.packing.folding import array
from ebnet.packing.program import Program

OPSET = 17
IR_VERSION = 8


def export_onnx(model: ExpertBinaryNetwork, path: str | Path) -> Path:
    """Write `model` (precision ``binary``) as ONNX: input ``images`` [batch, channels, h, w], output ``logits``."""
    path = Path(path)
    require_folder(path)
    write_atomically(path, onnx_model(model).SerializeToString())
    return path


def onnx_model(model: ExpertBinaryNetwork) -> Any:
    """The checked `onnx.ModelProto`."""
    import onnx
    from onnx import TensorProto, helper

    graph = _Graph(Program(model, other_bits=True))
    images: list[str | int | None] = ["batch", model.config.in_channels, "height", "width"]
    proto = helper.make_model(
        helper.make_graph(
            graph.nodes,
            f"ebnet {model.config.arch}",
            [helper.make_tensor_value_info("images", TensorProto.FLOAT, images)],
            [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", model.config.num_classes])],
            graph.initializers,
        ),
        producer_name="ebnet",
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
    )
    onnx.checker.check_model(proto)
    return proto


class _Graph:
    """Nodes and initializers; value i of the program is the tensor ``v<i>``, the last one ``logits``."""

    def __init__(self, program: Program) -> None:
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self.reals = program.reals
        self.bits = program.bits
        self.quantizers = program.quantizers
        self.channels = {0: program.in_channels}
        self.names = {0: "images"}
        self.constant("zero", np.float32(0))
        self.constant("one", np.float32(1))
        self.constant("minus_one", np.float32(-1))
        for index, op in enumerate(program.ops):
            value = index + 1
            self.names[value] = "logits" if value == len(program.ops) else f"v{value}"
            inputs = [self.names[i] for i in op["in"]]
            joined = op["in"][: 1 if op["op"] == "sum" else None]
            self.channels[value] = op.get("out") or sum(self.channels[i] for i in joined)
            getattr(self, f"_{op['op']}")(op, inputs, self.names[value])

    def constant(self, name: str, array: Any) -> str:
        from onnx import numpy_helper

        array = np.asarray(array)
        if array.dtype == np.float64:
            array = array.astype(np.float32)
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def node(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        from onnx import helper

        self.nodes.append(helper.make_node(kind, inputs, [output], name=output, **attributes))
        return output

    def affine(self, name: str, x: str, output: str) -> str:
        """x * scale + shift per channel of a map."""
        scale, shift = self.reals[f"{name}.norm"][:, :, None, None]
        scaled = self.node("Mul", [x, self.constant(f"{name}.norm.scale", scale)], f"{output}.scaled")
        return self.node("Add", [scaled, self.constant(f"{name}.norm.shift", shift)], output)

    def activation(self, op: dict[str, Any], x: str, output: str, trailing: int) -> str:
        """The op's activation; `trailing` axes follow the channel's."""
        kind = op.get("act", "none")
        if kind == "none":
            return self.node("Identity", [x], output)
        if kind == "relu":
            return self.node("Relu", [x], output)
        slope = self.reals[f"{op['name']}.slope"].reshape(-1, *[1] * trailing)
        return self.node("PRelu", [x, self.constant(f"{op['name']}.slope", slope)], output)

    def _conv(self, op: dict[str, Any], inputs: list[str], output: str) -> None:
        weight = self.constant(f"{op['name']}.weight", self.reals[f"{op['name']}.weight"])
        y = self.node("Conv", [inputs[0], weight], f"{output}.conv", **_window(op))
        self.activation(op, self.affine(op["name"], y, f"{output}.norm"), output, 2)

    def _sum(self, op: dict[str, Any], inputs: list[str], output: str) -> None:
        parts = [
            self.node("Mul", [x, self.constant(f"{output}.factor{i}", np.float32(factor))], f"{output}.part{i}")
            for i, (x, factor) in enumerate(zip(inputs, op["factors"], strict=True))
        ]
        self.node("Sum", parts, output)

    def _maxpool(self, op: dict[str, Any], inputs: list[str], output: str) -> None:
        self.node("MaxPool", inputs, output, ceil_mode=int(op.get("ceil", False)), **_window(op))

    def _avgpool(self, op: dict[str, Any], inputs: list[str], output: str) -> None:
        """In ceil mode runtimes disagree on the divisor at the border, so: sum / count, both as floor-mode pools of a
        map padded to whole windows."""
        kernel = op["kernel"]
        shape = self.node("Shape", inputs, f"{output}.shape", start=2)
        size = self.constant(f"{output}.kernel", np.array([kernel, kernel], np.int64))
        rest = self.node("Mod", [self.node("Neg", [shape], f"{output}.neg"), size], f"{output}.rest")
        before = self.constant(f"{output}.before", np.zeros(6, np.int64))
        pads = self.node("Concat", [before, rest], f"{output}.pads", axis=0)
        ones = self.node("Add", [self.node("Mul", [inputs[0], "zero"], f"{output}.zeros"), "one"], f"{output}.ones")
        pooled = []
        for name, x in (("sum", inputs[0]), ("count", ones)):
            padded = self.node("Pad", [x, pads], f"{output}.{name}.padded")
            pooled.append(
                self.node("AveragePool", [padded], f"{output}.{name}", kernel_shape=[kernel] * 2, strides=[kernel] * 2)
            )
        self.node("Div", pooled, output)

    def _concat(self, op: dict[str, Any], inputs: list[str], output: str) -> None:
        self.node("Concat", inputs, output, axis=1)

    def _global_pool(self, op: dict[str, Any], inputs: list[str], output: str) -> None:
        self.node("ReduceMean", inputs, output, axes=[2, 3], keepdims=0)

    def _linear(self, op: dict[str, Any], inputs: list[str], output: str) -> None:
        name = op["name"]
        weight = self.constant(f"{name}.weight", self.reals[f"{name}.weight"])
        bias = self.constant(f"{name}.bias", self.reals[f"{name}.bias"])
        y = self.node("Gemm", [inputs[0], weight, bias], f"{output}.linear", transB=1)
        self.activation(op, y, output, 0)

    def _binary(self, op: dict[str, Any], inputs: list[str], output: str) -> None:
        x = self.affine(op["name"], inputs[0], f"{output}.x")
        self._unit(op, x, self._sign(x, f"{output}.sign"), self._signs(op, op.get("groups", 1)), output)

    def _quantized(self, op: dict[str, Any], inputs: list[str], output: str) -> None:
        """Weights as they are quantized; activations as the sum of signs, the levels or the ReLU that they are."""
        name = op["name"]
        quantizer = self.quantizers[name]
        x = self.affine(name, inputs[0], f"{output}.x")
        if isinstance(quantizer, Real):
            used = self.node("Relu", [x], f"{output}.used")
        elif isinstance(quantizer, Sign | ShiftedSign | MultiBaseSign):
            used = self._sum_of_signs(quantizer, x, output)
        else:
            thresholds, levels = quantizer.levels()
            used = self.node("Mul", [x, "zero"], f"{output}.level.0")
            used = self.node("Add", [used, self.constant(f"{name}.level.0", levels[0].numpy())], f"{output}.lowest")
            for i, threshold in enumerate(thresholds, 1):
                edge = self.constant(f"{name}.threshold.{i}", threshold.numpy())
                level = self.constant(f"{name}.level.{i}", levels[i].numpy())
                above = self.node("GreaterOrEqual", [x, edge], f"{output}.above.{i}")
                used = self.node("Where", [above, level, used], f"{output}.level.{i}")
        self._unit(op, x, used, self.reals[f"{name}.weight"], output)

    def _sum_of_signs(self, quantizer: ActivationQuantizer, x: str, output: str) -> str:
        total = ""
        for i, (scale, shift) in enumerate(quantizer.bases()):
            shifted = [x, self.constant(f"{output}.shift.{i}", array(shift).reshape(-1, 1, 1))]
            sign = self._sign(self.node("Add", shifted, f"{output}.shifted.{i}"), f"{output}.sign.{i}")
            part = self.node("Mul", [sign, self.constant(f"{output}.beta.{i}", array(scale))], f"{output}.base.{i}")
            total = self.node("Add", [total, part], f"{output}.sum.{i}") if total else part
        return total

    def _sign(self, x: str, output: str) -> str:
        positive = self.node("GreaterOrEqual", [x, "zero"], f"{output}.positive")
        return self.node("Where", [positive, "one", "minus_one"], output)

    def _unit(self, op: dict[str, Any], x: str, used: str, weights: np.ndarray, output: str) -> None:
        """All that follows the quantizers: convolutions, the gate's choice, scales, activation, skip, shifts."""
        name, experts, groups = op["name"], op.get("experts", 1), op.get("groups", 1)
        mean, index = "", ""
        if experts > 1 or "squeeze" in op:
            mean = self.node("ReduceMean", [x], f"{output}.mean", axes=[2, 3], keepdims=0)
        convs = []
        for expert in range(experts):
            weight = self.constant(f"{name}.weight.{expert}", weights[expert])
            convs.append(self.node("Conv", [used, weight], f"{output}.conv.{expert}", group=groups, **_window(op)))
        if experts > 1:
            index = self._index(name, mean, output)
        y = self._chosen(convs, index, output) if experts > 1 else convs[0]
        scale = self.constant(f"{name}.scale", self.reals[f"{name}.scale"][..., None, None])
        if op.get("expert_scales"):
            scale = self.node("GatherND", [scale, index], f"{output}.own_scale")
        if "squeeze" in op:
            scale = self._data_driven(name, scale, mean, output)
        y = self.node("Mul", [y, scale], f"{output}.scaled")
        y = self._added(op, "shift", y, output)
        if not op.get("act_last"):
            y = self.activation(op, y, f"{output}.act", 2)
        if "skip" in op:
            y = self.node("Add", [y, self.names[op["skip"]]], f"{output}.skipped")
        if op.get("act_last"):
            y = self.activation(op, y, f"{output}.act", 2)
        self.node("Identity", [self._added(op, "after", y, output)], output)

    def _added(self, op: dict[str, Any], kind: str, y: str, output: str) -> str:
        """y + the op's shift of that kind, where it has one."""
        if not op.get(kind):
            return y
        values = self.constant(f"{op['name']}.{kind}", self.reals[f"{op['name']}.{kind}"][:, None, None])
        return self.node("Add", [y, values], f"{output}.{kind}")

    def _signs(self, op: dict[str, Any], groups: int) -> np.ndarray:
        """The packed bits as +-1 weights [experts, out, in/groups, k, k]."""
        bits = self.bits[f"{op['name']}.bits"]
        inputs, kernel = self.channels[op["in"][0]] // groups, op["kernel"]
        values = np.unpackbits(bits, axis=2, count=inputs * kernel**2, bitorder="little").astype(np.float32) * 2 - 1
        return values.reshape(*bits.shape[:2], kernel, kernel, inputs).transpose(0, 1, 4, 2, 3)

    def _index(self, name: str, mean: str, output: str) -> str:
        """The chosen expert: argmax of the gate, the first of equals."""
        weight = self.constant(f"{name}.gate.weight", self.reals[f"{name}.gate.weight"])
        bias = self.constant(f"{name}.gate.bias", self.reals[f"{name}.gate.bias"])
        gate = self.node("Gemm", [mean, weight, bias], f"{output}.gate", transB=1)
        return self.node("ArgMax", [gate], f"{output}.expert", axis=1, keepdims=1, select_last_index=0)

    def _chosen(self, convs: list[str], index: str, output: str) -> str:
        """The chosen expert's map: a gather over stacked maps."""
        axis = self.constant(f"{output}.axis", np.array([1], np.int64))
        stacked = [self.node("Unsqueeze", [conv, axis], f"{conv}.stacked") for conv in convs]
        together = self.node("Concat", stacked, f"{output}.experts", axis=1)
        return self.node("GatherND", [together, index], f"{output}.chosen", batch_dims=1)

    def _data_driven(self, name: str, scale: str, mean: str, output: str) -> str:
        squeeze = self.constant(f"{name}.squeeze", self.reals[f"{name}.squeeze"].T)
        excite = self.constant(f"{name}.excite", self.reals[f"{name}.excite"].T)
        hidden = self.node("Relu", [self.node("MatMul", [mean, squeeze], f"{output}.squeezed")], f"{output}.hidden")
        factor = self.node("Sigmoid", [self.node("MatMul", [hidden, excite], f"{output}.excited")], f"{output}.factor")
        axes = self.constant(f"{output}.map_axes", np.array([2, 3], np.int64))
        return self.node("Mul", [scale, self.node("Unsqueeze", [factor, axes], f"{output}.factors")], f"{output}.scale")


def _window(op: dict[str, Any]) -> dict[str, Any]:
    return {
        "kernel_shape": [op["kernel"]] * 2,
        "strides": [op.get("stride", 1)] * 2,
        "pads": [op.get("pad", 0)] * 4,
        "dilations": [op.get("dilation", 1)] * 2,
    }
