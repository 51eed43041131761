"""The network a packed file is to be: its numbers rounded as the file rounds them.

A file in fp16 does not compute what the trained network computes, but what a network with its rounded numbers does.
That one is the reference, so that a narrow file is held to the same bounds as a wide one.
"""

import copy
import json
from itertools import zip_longest

import numpy as np
import torch
from safetensors import safe_open
from safetensors.numpy import load_file

from ebnet.errors import ConfigError
from ebnet.models.network import ExpertBinaryNetwork
from ebnet.packing.program import Program
from ebnet.runtime.engine import Engine


def require_same_program(engine: Engine, model: ExpertBinaryNetwork) -> None:
    """Another network altogether is a sentence. Names may differ: those of earlier versions do."""
    if engine.classes != model.config.num_classes:
        raise ConfigError(
            f"{engine.path} tells {engine.classes} classes apart, the network {model.config.num_classes}: "
            "it was packed from another one"
        )
    for index, (packed, own) in enumerate(zip_longest(engine.program, Program(model).ops, fillvalue=None)):
        if packed is None or own is None or packed | {"name": ""} != own | {"name": ""}:
            raise ConfigError(
                f"{engine.path} was packed from another network: its op {index} is {packed}, the network's {own}"
            )


def _stored(engine: Engine, program: Program) -> dict[str, np.ndarray]:
    """The file's tensors under the names they have in the network of today."""
    with safe_open(engine.path, "numpy") as file:
        ops = json.loads(file.metadata()["program"])
    names = {op["name"]: own["name"] for op, own in zip(ops, program.ops, strict=True) if "name" in op}
    stored = {}
    for name, array in load_file(engine.path).items():
        op = next(op for op in sorted(names, key=len, reverse=True) if name.startswith(f"{op}."))
        stored[names[op] + name[len(op) :]] = array
    return stored


def differing_tensors(engine: Engine, model: ExpertBinaryNetwork) -> list[str]:
    """The tensors of a file that are not the network's, every expert's included; missing and unknown ones too."""
    program = Program(model)
    stored = _stored(engine, program)
    expected: dict[str, np.ndarray] = program.reals | program.bits
    differing = set(expected) ^ set(stored)
    for name in set(expected) & set(stored):
        kept, own = stored[name], expected[name]
        same = kept.shape == own.shape and np.array_equal(kept, own.astype(kept.dtype))
        differing |= set() if same else {name}
    return sorted(differing)


def rounded(model: ExpertBinaryNetwork, engine: Engine) -> ExpertBinaryNetwork:
    """A copy of the network whose reals have the widths they have in the file. What the file holds is not copied."""
    network = copy.deepcopy(model).eval()
    program = Program(network)
    widths = {name: array.dtype for name, array in _stored(engine, program).items()}
    with torch.no_grad():
        for name, tensor in program.tensors.items():
            tensor.copy_(_rounded(program.reals[name], widths.get(name)).reshape(tensor.shape))
        for name, norm in program.norms.items():
            scale, shift = _rounded(program.reals[name], widths.get(name))
            assert norm.running_mean is not None
            assert norm.running_var is not None
            norm.eps = 0.0
            norm.running_mean.zero_()
            norm.running_var.fill_(1.0)
            norm.weight.copy_(scale)
            norm.bias.copy_(shift)
    return network


def _rounded(values: np.ndarray, width: np.dtype | None) -> torch.Tensor:
    return torch.from_numpy(values.astype(width or np.float32).astype(np.float32))
