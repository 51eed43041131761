"""What the gates do from epoch to epoch, on a few images that stay the same.

For each layer with several experts:

churn     the share of the images whose expert is another than an epoch ago. An expert whose images come and go learns
          nothing of its own.
usage     the share of the images that each expert takes.
margin    the mean distance between the best and the second score of the gate: how far an image is from being moved.
distance  how far apart the experts' weights are: the mean |W_i - W_j| over pairs, as a share of the mean |W_i|.
"""

from dataclasses import asdict, dataclass
from itertools import combinations
from statistics import mean
from typing import Any

import torch
from torch import Tensor

from ebnet.models.network import ExpertBinaryNetwork
from ebnet.recipe.settings import Routing
from ebnet.train.gate_start import expert_layers, gate_inputs

IMAGES = 512
"""Validation images that are watched."""

ALIKE = 0.01
"""Experts nearer than this share of their size are one expert, paid for several times."""


@dataclass(frozen=True)
class LayerRouting:
    """One layer after one epoch."""

    churn: float | None
    """None where no epoch came before, as after going on from a checkpoint that has no choices in it."""
    usage: list[float]
    margin: float
    distance: float


class RoutingWatch:
    """Watches one phase; every process sees the same images and finds the same."""

    def __init__(self, network: ExpertBinaryNetwork, pixels: Tensor) -> None:
        self.network, self.pixels = network, pixels
        self.choices: dict[str, Tensor] = {}
        """The expert of each image at the last look, uint8; part of a checkpoint, so that a restart loses no churn."""

    def look(self) -> dict[str, LayerRouting]:
        """Of the network as it is; what follows is compared with it."""
        found: dict[str, LayerRouting] = {}
        layers = expert_layers(self.network)
        for name, means in gate_inputs(self.network, self.pixels).items():
            layer = layers[name]
            assert layer.gate is not None
            scores = layer.gate.linear(means).detach()
            choice = (scores == scores.amax(1, keepdim=True)).to(torch.int8).argmax(1).to(torch.uint8).cpu()
            first, second = scores.topk(2, dim=1).values.unbind(1)
            before = self.choices.get(name)
            counts = torch.bincount(choice.long(), minlength=layer.num_experts)
            found[name] = LayerRouting(
                churn=None if before is None else (before != choice).double().mean().item(),
                usage=(counts / len(choice)).tolist(),
                margin=(first - second).mean().item(),
                distance=_distance(layer.expert_weights.detach()),
            )
            self.choices[name] = choice
        return found


def as_record(seen: dict[str, LayerRouting]) -> dict[str, Any]:
    """For metrics.jsonl."""
    return {name: {k: v for k, v in asdict(layer).items() if v is not None} for name, layer in seen.items()}


def mean_churn(record: dict[str, Any]) -> float | None:
    """Over the layers of an epoch's record; None where no churn is known."""
    known = [layer["churn"] for layer in record.values() if "churn" in layer]
    return mean(known) if known else None


def advice(record: dict[str, Any], settings: Routing, threshold: float, last: bool) -> list[str]:
    """A sentence for each thing that is wrong with the routing after an epoch, naming the setting that helps."""
    found = []
    churn = mean_churn(record)
    if churn is not None and churn > threshold:
        found.append(
            f"{churn:.0%} of the images change expert from one epoch to the next, so no expert can learn its part; "
            f"{_steadier(settings)}"
        )
    alike = [name for name, layer in record.items() if layer["distance"] < ALIKE]
    if last and alike:
        found.append(
            f"the experts of {', '.join(alike)} are nearly equal: N times the bytes of one for nothing; "
            + ("set routing.coupling_end lower" if settings.coupling else "raise routing.gate_rate")
        )
    return found


def _steadier(settings: Routing) -> str:
    wanted = []
    if settings.gate_start == "random":
        wanted.append('routing.gate_start = "clusters"')
    if settings.gate_rate > 0.1:
        wanted.append("routing.gate_rate = 0.1")
    if settings.coupling == 0:
        wanted.append("routing.coupling = 1")
    return f"set {', '.join(wanted)}" if wanted else "lower routing.gate_rate or the learning rate"


def _distance(weights: Tensor) -> float:
    """Of [experts, ...]."""
    flat = weights.flatten(1).double()
    pairs = [(flat[i] - flat[j]).norm() for i, j in combinations(range(len(flat)), 2)]
    return (torch.stack(pairs).mean() / flat.norm(dim=1).mean().clamp(min=1e-12)).item()
