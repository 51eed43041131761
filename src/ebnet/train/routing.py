"""The routing policy: what keeps gates steady and experts fed while they learn.

Right after replication the experts are equal and a random gate tells images apart by margins of 0.1 to 0.2, which Adam
moves across within some fifty steps. Two things follow. Routing *churns*: a large share of the images changes expert
from one epoch to the next, so that no expert can learn its part. And experts *starve*: each sees one image in N. The
settings of `[routing]` answer both; their defaults are the paper's procedure.

gate_start  "clusters": gates begin as nearest-centre classifiers of their own input (`ebnet.train.gate_start`), with
            margins of about one instead of a tenth.
gate_rate   the gates' learning rate as a share of the others': boundaries move slower than the experts behind them.
coupling    lambda: between backward pass and optimizer step the gradient of expert i becomes G_i + lambda sum_j G_j.
            I + lambda 1 1^T is positive definite, so the points where all gradients vanish stay the same: on the way
            there experts learn together what they have in common, and apart what the data says is theirs.
            It falls linearly to 0 at `coupling_end`, a share of the phase.

All of it acts only where a layer has several experts, and in every phase that has them.
"""

from typing import Any

from torch import Tensor, nn

from ebnet.models.network import ExpertBinaryNetwork
from ebnet.nn.binary_conv import BinaryConv2d
from ebnet.nn.cond_conv import CondBinaryConv2d
from ebnet.nn.expert_conv import ExpertBinaryConv2d
from ebnet.recipe.settings import Routing


class RoutingPolicy:
    """A recipe's `[routing]` applied to the network of one phase."""

    def __init__(self, network: ExpertBinaryNetwork, settings: Routing, steps: int) -> None:
        """`steps` are those of the whole phase."""
        self.network, self.settings, self.steps = network, settings, steps
        self.layers = [layer for layer in network.binary_layers().values() if layer.num_experts > 1]

    def named_groups(self) -> list[tuple[float, dict[str, nn.Parameter]]]:
        """The network's parameters as groups for the optimizer, each with its factor on the learning rate."""
        gates = {id(p) for layer in self.layers for p in _gate(layer).parameters()}
        parameters = dict(self.network.named_parameters())
        if not gates or self.settings.gate_rate == 1.0:
            return [(1.0, parameters)]
        chosen = {name: p for name, p in parameters.items() if id(p) in gates}
        rest = {name: p for name, p in parameters.items() if id(p) not in gates}
        return [(1.0, rest), (self.settings.gate_rate, chosen)]

    def coupling(self, step: int) -> float:
        """lambda in a step of the phase."""
        end = self.settings.coupling_end * self.steps
        return self.settings.coupling * max(0.0, 1.0 - step / end)

    def experts(self) -> dict[Tensor, int]:
        """The weights of several experts, and of how many: what the optimizer couples."""
        return {layer.weight: layer.num_experts for layer in self.layers}


def _gate(layer: BinaryConv2d) -> nn.Module:
    """What decides about a layer's experts."""
    gate: Any = layer.routing if isinstance(layer, CondBinaryConv2d) else None
    if isinstance(layer, ExpertBinaryConv2d):
        gate = layer.gate
    assert isinstance(gate, nn.Module)
    return gate
