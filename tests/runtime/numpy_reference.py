"""docs/format.md in numpy: each op of a program, as slowly and plainly as it is written there."""

from typing import Any

import numpy as np

Op = dict[str, Any]
Tensors = dict[str, np.ndarray]


def windows(x: np.ndarray, op: Op, fill: float) -> np.ndarray:
    """[batch, out h, out w, k * k, channels]: every window, `fill` outside the image."""
    k, s, p, d = op["kernel"], op.get("stride", 1), op.get("pad", 0), op.get("dilation", 1)
    _, height, width, _ = x.shape
    spare = s - 1 if op.get("ceil") else 0
    rows, columns = ((side + 2 * p - d * (k - 1) - 1 + spare) // s + 1 for side in (height, width))
    padded = np.pad(x, ((0, 0), (p, p + spare), (p, p + spare), (0, 0)), constant_values=fill)
    taps = [
        padded[:, y * d : y * d + s * (rows - 1) + 1 : s, z * d : z * d + s * (columns - 1) + 1 : s]
        for y in range(k)
        for z in range(k)
    ]
    return np.stack(taps, 3)


def activated(x: np.ndarray, op: Op, tensors: Tensors) -> np.ndarray:
    kind = op.get("act", "none")
    if kind == "none":
        return x
    slope = 0.0 if kind == "relu" else tensors[f"{op['name']}.slope"]
    return np.where(x < 0, x * slope, x)


MEAN, STD = 0.5, 0.25
"""Of the pixels of all test files."""


def coded(x: np.ndarray, code: Any) -> tuple[np.ndarray, float]:
    """What the bytes of x stand for in steps, and the step: `byte - zero`."""
    step, zero, scale, offset = (1 / 255, 128, 255 * STD, 255 * MEAN) if code == "pixels" else (*code, None, code[1])
    inverse = np.float32(scale if scale is not None else np.float32(1) / np.float32(step))
    scaled = (x.astype(np.float64) * np.float64(inverse) + offset).astype(np.float32)
    return np.rint(np.clip(scaled, 0, 255)) - zero, float(np.float32(step))


def int8_layer(op: Op, x: np.ndarray, tensors: Tensors) -> np.ndarray:
    """Stem, shortcut, head or classifier in whole numbers."""
    name = op["name"]
    whole, step = coded(x, op["int8"])
    weight = tensors[f"{name}.weight"].astype(np.float64)
    if op["op"] == "conv":
        out, cin, k, _ = weight.shape
        weight = weight.transpose(0, 2, 3, 1).reshape(out, k * k, cin)
        sums = np.einsum("bhwtc,otc->bhwo", windows(whole, op, 0.0), weight, optimize=True)
        scale, shift = tensors[f"{name}.norm"].astype(np.float64)
    else:
        sums = whole @ weight.T
        scale, shift = tensors[f"{name}.scale"].astype(np.float64), tensors[f"{name}.bias"].astype(np.float64)
    return activated(sums * step / 64 * scale + shift, op, tensors)


def evaluate(op: Op, inputs: list[np.ndarray], skip: np.ndarray | None, tensors: Tensors) -> tuple[np.ndarray, Any]:
    """The op's value for NHWC inputs (vectors are 1x1 maps), and the experts a binary op chose."""
    x, name, kind = inputs[0], op.get("name", ""), op["op"]
    if "int8" in op:
        return int8_layer(op, x, tensors), None
    if kind == "conv":
        out, cin, k, _ = tensors[f"{name}.weight"].shape
        weight = tensors[f"{name}.weight"].transpose(0, 2, 3, 1).reshape(out, k * k, cin)
        scale, shift = tensors[f"{name}.norm"]
        y = np.einsum("bhwtc,otc->bhwo", windows(x, op, 0.0), weight, optimize=True)
        return activated(y * scale + shift, op, tensors), None
    if kind == "maxpool":
        return windows(x, op, -np.inf).max(3), None
    if kind == "avgpool":
        return np.nanmean(windows(x, op, np.nan), 3), None
    if kind == "concat":
        return np.concatenate(inputs, 3), None
    if kind == "sum":
        return sum(np.float32(factor) * one for factor, one in zip(op["factors"], inputs, strict=True)), None
    if kind == "global_pool":
        return x.mean((1, 2), keepdims=True), None
    if kind == "linear":
        return activated(x @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"], op, tensors), None
    return binary(op, x, skip, tensors)


def binary(op: Op, x: np.ndarray, skip: np.ndarray | None, tensors: Tensors) -> tuple[np.ndarray, np.ndarray]:
    name, groups, k = op["name"], op.get("groups", 1), op["kernel"]
    norm_scale, norm_shift = tensors[f"{name}.norm"].astype(np.float32)
    # In float32 and with two roundings, as the engine does it: signs are equal, not close.
    normed = norm_scale * x.astype(np.float32) + norm_shift
    mean = (norm_scale * x.mean((1, 2)) + norm_shift).astype(np.float64)
    experts = np.zeros(len(x), np.int64)
    if op.get("experts", 1) > 1:
        experts = (mean @ tensors[f"{name}.gate.weight"].T + tensors[f"{name}.gate.bias"]).argmax(1)
    scale = tensors[f"{name}.scale"].astype(np.float64)
    scale = scale[experts] if op.get("expert_scales") else np.broadcast_to(scale, (len(x), op["out"]))
    if op.get("squeeze"):
        hidden = np.maximum(mean @ tensors[f"{name}.squeeze"].T, 0)
        scale = scale / (1 + np.exp(-(hidden @ tensors[f"{name}.excite"].T)))
    per_group = x.shape[3] // groups
    bits = np.unpackbits(tensors[f"{name}.bits"], axis=2, count=k * k * per_group, bitorder="little")
    weight = (bits.astype(np.float64) * 2 - 1).reshape(-1, groups, op["out"] // groups, k * k, per_group)
    taps = windows(np.where(normed >= 0, 1.0, -1.0), op, 0.0)
    taps = taps.reshape(*taps.shape[:4], groups, per_group)
    dots = [np.einsum("hwtgc,gotc->hwgo", taps[i], weight[e], optimize=True) for i, e in enumerate(experts)]
    y = np.stack(dots).reshape(*taps.shape[:3], -1) * scale[:, None, None]
    y = y + tensors[f"{name}.shift"] if op.get("shift") else y
    skip = np.zeros_like(y) if skip is None else skip
    y = activated(y + skip, op, tensors) if op.get("act_last") else activated(y, op, tensors) + skip
    return y + tensors[f"{name}.after"] if op.get("after") else y, experts
