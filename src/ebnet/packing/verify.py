"""Does the engine compute what the torch model computes? Tensors, logits, experts, and where they first differ.

The file's tensors must be the model's, rounded as the file rounds them; the model is then run with the same rounding.
The two add in different orders, so a pre-sign value within float error of 0 may get the other sign, a gate with two
largest values another expert, and an int8 layer's input within float error of half-way between two bytes the other one,
which changes everything after it. Such a difference is called explained.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ebnet.models.network import ExpertBinaryNetwork
from ebnet.packing.float_error import Sizes
from ebnet.packing.folding import FoldedUnit, folded_norm
from ebnet.packing.int8_layer import Int8Layer
from ebnet.packing.program import Program
from ebnet.packing.rounded import differing_tensors, require_same_program, rounded
from ebnet.runtime.engine import Engine
from ebnet.runtime.results import Trace

NEAR_ZERO = {"fp32": 2.0**-18, "fp16": 2.0**-8, "bf16": 2.0**-5}
"""By stream: a pre-sign value s * x + b is within float error of 0 where it is below this part of abs(b) and of the
numbers that s * x was added up from (`float_error`). A gate's two largest values are a tie where they differ by no more
than this part of the largest."""

TOLERANCE = {"fp32": 1e-3, "fp16": 1e-2, "bf16": 5e-2}
"""By stream: largest difference of logits, relative to the image's largest logit."""


@dataclass(frozen=True)
class LayerDifference:
    """One binary layer's input over all images."""

    name: str
    near_zero: int
    """Pre-sign values within float error of 0."""
    flipped: int
    """Signs that differ."""
    max_difference: float
    """Of the layer's output, relative to its largest value."""
    experts_differ: int


@dataclass(frozen=True)
class Verification:
    images: int
    max_absolute: float
    max_relative: float
    top1_agreement: float
    experts_agreement: float
    within_tolerance: int
    """Images whose logits agree to `TOLERANCE`."""
    explained: int
    """Further images whose first difference is a sign within float error of 0, a gate's tie, or a byte's."""
    first_difference: str | None
    """The first layer with a differing sign."""
    layers: list[LayerDifference]
    tensors_differ: list[str]
    """The file's tensors that are not the network's in the file's widths."""
    classes_reached: int
    experts_reached: int
    """Of all layers together."""

    @property
    def unexplained(self) -> int:
        return self.images - self.within_tolerance - self.explained

    @property
    def passed(self) -> bool:
        return self.unexplained == 0 and not self.tensors_differ

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"unexplained": self.unexplained}


def verify(engine: Engine, model: ExpertBinaryNetwork, images: np.ndarray) -> Verification:
    """Run both on normalised NCHW float32 images and compare."""
    require_same_program(engine, model)
    trace = engine.trace(images)
    reference = rounded(model, engine)
    logits, seen = _torch_pass(reference, images)
    int8 = {layer.op: layer for layer in reference.modules() if isinstance(layer, Int8Layer) and not layer.pixels}
    scale = np.abs(logits).max(1).clip(1e-12)
    difference = np.abs(trace.logits - logits).max(1)
    close = difference <= TOLERANCE[engine.stream] * scale
    near_zero = NEAR_ZERO[engine.stream]

    layers = []
    explained = np.zeros(len(images), bool)
    diverged = np.zeros(len(images), bool)
    experts_equal = []
    program = engine.program
    sizes = Sizes(program, _layers(program, Program(model)), trace, images)
    units = iter(enumerate(seen))
    for index, op in enumerate(program):
        if index in int8:
            near, differs = _bytes(trace, op["in"][0], int8[index], near_zero)
            explained |= differs.any(1) & ~diverged & (differs <= near).all(1)
            diverged |= differs.any(1)
        if op["op"] != "binary":
            continue
        layer, unit = next(units)
        near, flipped = _signs(sizes, op["in"][0], unit, near_zero)
        value = trace.values[index].transpose(0, 3, 1, 2)
        expert_differs = trace.experts[layer] != unit.experts
        experts_equal.append(~expert_differs)
        apart = flipped.any((1, 2, 3)) | expert_differs
        first = apart & ~diverged
        tied = ~expert_differs | unit.tied(trace.experts[layer], near_zero)
        explained |= first & (flipped <= near).all((1, 2, 3)) & tied
        diverged |= apart
        layers.append(
            LayerDifference(
                op["name"],
                int(near.sum()),
                int(flipped.sum()),
                unit.difference(value),
                int(expert_differs.sum()),
            )
        )
    return Verification(
        images=len(images),
        max_absolute=float(difference.max()),
        max_relative=float((difference / scale).max()),
        top1_agreement=float((trace.logits.argmax(1) == logits.argmax(1)).mean()),
        experts_agreement=float(np.mean(experts_equal)),
        within_tolerance=int(close.sum()),
        explained=int((explained & ~close).sum()),
        first_difference=next((row.name for row in layers if row.flipped or row.experts_differ), None),
        layers=layers,
        tensors_differ=differing_tensors(engine, model),
        classes_reached=len(np.unique(trace.logits.argmax(1))),
        experts_reached=sum(len(np.unique(row)) for row in trace.experts),
    )


@dataclass
class _Seen:
    """What a unit of the torch model saw and made."""

    norm: np.ndarray
    before_sign: np.ndarray
    output: np.ndarray | None
    """None for an op that is a part of a sum."""
    experts: np.ndarray
    gate: np.ndarray | None
    """The gate's values [batch, experts], where there is one."""

    def difference(self, value: np.ndarray) -> float:
        """Of the engine's value, relative to the largest of the output."""
        if self.output is None:
            return 0.0
        return float(np.abs(value - self.output).max() / max(np.abs(self.output).max(), 1e-12))

    def tied(self, chosen: np.ndarray, near: float) -> np.ndarray:
        """Per image: whether the expert chosen is as good as torch's, within float error."""
        if self.gate is None:
            return np.zeros(len(chosen), bool)
        lost = self.gate.max(1) - self.gate[np.arange(len(chosen)), chosen]
        return lost <= near * np.abs(self.gate).max(1)


def _layers(packed: list[dict[str, Any]], own: Program) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Weights and norms of the real convolutions that are real in the file too, by their op."""
    return {
        index: (own.reals[f"{op['name']}.weight"], own.reals[f"{op['name']}.norm"])
        for index, op in enumerate(own.ops)
        if op["op"] == "conv" and "int8" not in packed[index]
    }


def _signs(sizes: Sizes, value: int, unit: _Seen, near_zero: float) -> tuple[np.ndarray, np.ndarray]:
    """Per element of a layer's input: within float error of 0 (in torch's pass), and whether the signs differ.

    What is exactly 0 in both passes, as where a ReLU has cut it off, came out alike and is not near to anything.
    """
    scale, shift = (row.astype(np.float32)[None, :, None, None] for row in unit.norm)
    own, other = scale * sizes.value(value) + shift, unit.before_sign
    near = np.abs(other) <= near_zero * (np.abs(scale) * sizes.of(value) + np.abs(shift))
    return near & ((own != 0) | (other != 0)), (own >= 0) != (other >= 0)


def _bytes(trace: Trace, value: int, layer: Int8Layer, near_tie: float) -> tuple[np.ndarray, np.ndarray]:
    """Per byte of an int8 layer's input: within float error of half-way to another, and whether the two differ."""
    read = torch.from_numpy(trace.values[value - 1])
    scaled = layer.to_scaled(read.permute(0, 3, 1, 2) if layer.scaled.ndim == 4 else read.reshape(layer.scaled.shape))
    own = layer.scaled.flatten(1)
    near = (own - own.floor() - 0.5).abs() <= near_tie * (own + layer.offset.max())
    return near.numpy(), (scaled.flatten(1).round() != own.round()).numpy()


def _torch_pass(model: ExpertBinaryNetwork, images: np.ndarray) -> tuple[np.ndarray, list[_Seen]]:
    units = [unit for _, unit in model.units()]
    before: dict[nn.Module, np.ndarray] = {}
    after: dict[nn.Module, np.ndarray] = {}

    def keep(store: dict[nn.Module, np.ndarray]) -> Any:
        def hook(module: nn.Module, _: tuple[Tensor, ...], output: Tensor) -> None:
            store[module] = output.detach().numpy()

        return hook

    hooks = [unit.norm.register_forward_hook(keep(before)) for unit in units if not isinstance(unit, FoldedUnit)]
    hooks += [unit.register_forward_hook(keep(after)) for unit in units]
    gates = {
        unit: gate.linear
        for unit in units
        if not isinstance(unit, FoldedUnit) and (gate := getattr(unit.conv, "gate", None)) is not None
    }
    hooks += [gate.register_forward_hook(keep(after)) for gate in gates.values()]
    training = model.training
    try:
        with torch.no_grad():
            logits = model.eval()(torch.from_numpy(images)).numpy()
    finally:
        model.train(training)
        for handle in hooks:
            handle.remove()
    seen = []
    for unit in units:
        if isinstance(unit, FoldedUnit):
            seen += _folded(unit, after[unit])
            continue
        chosen = getattr(unit.conv, "last_experts", None)
        experts = np.zeros(len(images), np.int64) if chosen is None else chosen.numpy()
        gate = after.get(gates[unit]) if unit in gates else None
        seen.append(_Seen(folded_norm(unit.norm), before[unit.norm], after[unit], experts, gate))
    return logits, seen


def _folded(unit: FoldedUnit, output: np.ndarray) -> list[_Seen]:
    """One for each op; what the ones before the last add up to is no value of the network."""
    outputs = [*[None] * (len(unit.ops) - 1), output]
    gates = [None if values is None else values.numpy() for values in unit.gate_values]
    return [
        _Seen(op.reals["norm"], before.numpy(), made, chosen.numpy(), gate)
        for op, before, made, chosen, gate in zip(unit.ops, unit.before_sign, outputs, unit.chosen, gates, strict=True)
    ]
