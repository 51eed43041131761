"""The network a packed file is to be: its numbers rounded as the file rounds them, its int8 layers in whole numbers.

A file in fp16 does not compute what the trained network computes, but what a network with its rounded numbers does.
That one is the reference, so that a narrow file is held to the same bounds as a wide one.
"""

import copy
import json
from dataclasses import asdict
from itertools import zip_longest

import numpy as np
import torch
from safetensors import safe_open
from safetensors.numpy import load_file

from ebnet.errors import ConfigError
from ebnet.models.network import ExpertBinaryNetwork
from ebnet.packing import halving, votes
from ebnet.packing.folding import FoldedUnit, fold
from ebnet.packing.int8 import PIXELS, Code, int8_layers, quantized
from ebnet.packing.int8_layer import Int8Layer
from ebnet.packing.program import Program
from ebnet.runtime.engine import Engine

ASIDE = {"name": "", "int8": 0, "factors": 0}
"""Fields that networks of one structure may differ in."""


def require_same_program(engine: Engine, model: ExpertBinaryNetwork) -> None:
    """Another network altogether is a sentence. Names may differ: those of earlier versions do."""
    if engine.classes != model.config.num_classes:
        raise ConfigError(
            f"{engine.path} tells {engine.classes} classes apart, the network {model.config.num_classes}: "
            "it was packed from another one"
        )
    for index, (packed, own) in enumerate(zip_longest(engine.program, Program(model).ops, fillvalue=None)):
        if packed is None or own is None or packed | ASIDE != own | ASIDE:
            raise ConfigError(
                f"{engine.path} was packed from another network: its op {index} is {packed}, the network's {own}"
            )


def stored_tensors(engine: Engine, program: Program) -> dict[str, np.ndarray]:
    """The file's tensors under the names they have in the network of today."""
    with safe_open(engine.path, "numpy") as file:
        ops = json.loads(file.metadata()["program"])
    names = {op["name"]: own["name"] for op, own in zip(ops, program.ops, strict=True) if "name" in op}
    stored = {}
    for name, array in load_file(engine.path).items():
        op = next(op for op in sorted(names, key=len, reverse=True) if name.startswith(f"{op}."))
        stored[names[op] + name[len(op) :]] = array
    return stored


def _expected(engine: Engine, program: Program) -> dict[str, np.ndarray]:
    """The tensors that the file is to hold: reals before they are narrowed, whole numbers and bits as they are."""
    codes = {index: op["int8"] for index, op in enumerate(engine.program) if "int8" in op}
    if not codes:
        return program.reals | program.bits
    read = {index: None if code == PIXELS else Code(*code) for index, code in codes.items()}
    missing = set(int8_layers(program.ops, program.reals, engine.preprocessing.size)) - set(codes)
    if missing:
        raise ConfigError(
            f"{engine.path}: op {min(missing)} is real among int8 layers, which `ebnet pack` does not write"
        )
    _, reals, weights = quantized(program.ops, program.reals, asdict(engine.preprocessing), read)
    return reals | weights | program.bits


def differing_tensors(engine: Engine, model: ExpertBinaryNetwork) -> list[str]:
    """The tensors of a file that are not the network's, every expert's included; missing and unknown ones too."""
    program = Program(model)
    stored = stored_tensors(engine, program)
    expected = _expected(engine, program)
    differing = set(expected) ^ set(stored)
    for name in set(expected) & set(stored):
        kept, own = stored[name], expected[name]
        same = kept.shape == own.shape and np.array_equal(kept, own.astype(kept.dtype))
        differing |= set() if same else {name}
    for index, (packed, own_op) in enumerate(zip(engine.program, program.ops, strict=True)):
        differing |= set() if packed.get("factors") == own_op.get("factors") else {f"factors of op {index}"}
    return sorted(differing)


def rounded(model: ExpertBinaryNetwork, engine: Engine) -> ExpertBinaryNetwork:
    """A copy of the network whose reals have the widths they have in the file. What the file holds is not copied.

    A layer that is int8 in the file is an `Int8Layer` in the copy, with the batch norm after it.
    """
    network = copy.deepcopy(model).eval()
    program = Program(network)
    expected = _expected(engine, program)
    widths = {name: array.dtype for name, array in stored_tensors(engine, program).items()}
    codes = {own["name"]: op["int8"] for op, own in zip(engine.program, program.ops, strict=True) if "int8" in op}
    with torch.no_grad():
        for name, tensor in program.tensors.items():
            if name.rpartition(".")[0] not in codes or name.endswith(".slope"):
                tensor.copy_(_rounded(expected[name], widths.get(name)).reshape(tensor.shape))
        for name, norm in program.norms.items():
            is_int8 = name.rpartition(".")[0] in codes
            scale, shift = (1.0, 0.0) if is_int8 else _rounded(expected[name], widths.get(name))
            assert norm.running_mean is not None
            assert norm.running_var is not None
            norm.eps = 0.0
            norm.running_mean.zero_()
            norm.running_var.fill_(1.0)
            norm.weight.copy_(torch.as_tensor(scale))
            norm.bias.copy_(torch.as_tensor(shift))
    for name, shortcut in program.halvings.items():
        own = None if name in codes else _rounded(expected[f"{name}.weight"], widths.get(f"{name}.weight"))
        halving.put(shortcut, own, _rounded(expected[f"{name}.norm"], widths.get(f"{name}.norm")))
    if program.classifiers:
        kept = ("classifier.weight", "classifier.bias")
        votes.put(program.classifiers, *(_rounded(expected[name], widths.get(name)) for name in kept))
    for unit, names in program.folded.values():
        ops = fold(names[0], unit)
        for name, op in zip(names, ops, strict=True):
            op.reals = {
                kind: _rounded(expected[f"{name}.{kind}"], widths.get(f"{name}.{kind}")).numpy() for kind in op.reals
            }
        _replace(network, unit, FoldedUnit(unit, ops))
    for name, code in codes.items():
        tensors = [f"{name}.norm"] if f"{name}.norm" in expected else [f"{name}.scale", f"{name}.bias"]
        reals = np.concatenate([_rounded(expected[one], widths.get(one)).numpy().reshape(-1) for one in tensors])
        scale, shift = reals.reshape(2, -1)
        layer = program.layers[name]
        weight = expected[f"{name}.weight"]
        whole = Int8Layer(layer, code, weight, scale, shift, engine.preprocessing)
        whole.op = next(index for index, op in enumerate(program.ops) if op.get("name") == name)
        _replace(network, layer, whole)
    return network


def _replace(network: ExpertBinaryNetwork, layer: torch.nn.Module, by: torch.nn.Module) -> None:
    # One that is watched is not computed by the native graph of its stem or shortcut, which knows it from before.
    layer.register_forward_hook(lambda *_: None)
    for parent in network.modules():
        for name, child in parent.named_children():
            if child is layer:
                setattr(parent, name, by)


def _rounded(values: np.ndarray, width: np.dtype | None) -> torch.Tensor:
    return torch.from_numpy(values.astype(width or np.float32).astype(np.float32))
