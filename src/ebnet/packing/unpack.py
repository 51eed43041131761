"""The network of a packed file in torch again: to look at, to train further, to pack otherwise.

The file has a weight's sign alone. Its latent value is set to half the width of fresh weights, 1 / (2 sqrt(fan in)), so
that training can turn a sign about as easily as in a network that was just binarized. A folded norm becomes a batch
norm of mean 0 and variance 1 whose weight and bias are the file's scale and shift. So the network computes what the
file does, in evaluation mode; before it is trained its norms want the statistics of what they see
(`ebnet.train.beginning`).
"""

import math
import os

import numpy as np
import torch
from torch import Tensor

from ebnet.errors import ConfigError
from ebnet.models.config import NetworkConfig
from ebnet.models.network import ExpertBinaryNetwork
from ebnet.nn.precision import Precision
from ebnet.packing import halving, votes
from ebnet.packing.program import Program
from ebnet.packing.rounded import require_same_program, stored_tensors
from ebnet.runtime.engine import Engine, load


def unpack(path: str | os.PathLike[str]) -> ExpertBinaryNetwork:
    """The Stage II network of a packed file or `zoo:NAME`, in eval mode.

    Raises:
        ConfigError: the file has int8 layers, whose real weights it no longer holds, or units whose numbers it holds
            folded, or its settings and its program are not of one network.
    """
    return unpacked(load(path))


def unpacked(engine: Engine) -> ExpertBinaryNetwork:
    """The network that an engine runs."""
    if any("int8" in op for op in engine.program):
        raise ConfigError(f"{engine.path} has int8 layers; their real weights are in the file of fp16 or fp32 reals")
    network = ExpertBinaryNetwork(NetworkConfig.from_dict(engine.network), Precision.BINARY)
    require_same_program(engine, network)
    program = Program(network)
    if program.folded:
        raise ConfigError(
            f"{engine.path} has units ({network.config.unit}: {network.config.weights}, {network.config.activations}) "
            "whose numbers are folded into few; the run has the network"
        )
    stored = stored_tensors(engine, program)
    with torch.no_grad():
        for name, tensor in program.tensors.items():
            tensor.copy_(_real(stored[name]).reshape(tensor.shape))
        for name, norm in program.norms.items():
            assert norm.running_mean is not None
            assert norm.running_var is not None
            scale, shift = _real(stored[name])
            norm.weight.copy_(scale)
            norm.bias.copy_(shift)
            norm.running_mean.zero_()
            norm.running_var.fill_(1.0 - norm.eps)
        for name, shortcut in program.halvings.items():
            halving.put(shortcut, _real(stored[f"{name}.weight"]), _real(stored[f"{name}.norm"]))
        if program.classifiers:
            votes.put(program.classifiers, _real(stored["classifier.weight"]), _real(stored["classifier.bias"]))
        for index, scale in program.scales:
            scale.copy_(torch.tensor(engine.program[index]["factors"]))
        for index, gate in program.gates:
            gate.copy_(torch.logit(torch.tensor(engine.program[index]["factors"][0], dtype=torch.float64)))
        for name, weights in program.weights.items():
            fan_in = weights[0, 0].numel()
            weights.copy_(unpacked_signs(stored[name], weights.shape) / (2 * math.sqrt(fan_in)))
    return network.eval()


def unpacked_signs(bits: np.ndarray, shape: torch.Size) -> Tensor:
    """What `packed_signs` packed, as +1 and -1 of the given shape [N, out, in/groups, kh, kw]."""
    experts, out, cin, high, wide = shape
    flat = np.unpackbits(bits, axis=2, bitorder="little", count=cin * high * wide)
    signs = torch.from_numpy(flat.astype(np.float32)) * 2 - 1
    return signs.reshape(experts, out, high, wide, cin).permute(0, 1, 4, 2, 3)


def _real(array: np.ndarray) -> Tensor:
    return torch.from_numpy(array.astype(np.float32))
