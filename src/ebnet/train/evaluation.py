"""How good a network is on the validation pictures."""

from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch.nn import functional as F

from ebnet.data import Loader, Normalise
from ebnet.models.network import ExpertBinaryNetwork
from ebnet.runs.state import Meter
from ebnet.train.metrics import ExpertUsage, averages, top_k


@dataclass(frozen=True)
class Evaluation:
    """Shares of 1, not percent."""

    top1: float
    top5: float
    loss: float
    usage: dict[str, list[float]]
    """For each layer with several experts, the share of pictures that each of them takes."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@torch.no_grad()
def evaluate(
    model: ExpertBinaryNetwork, loader: Loader, normalise: Normalise, device: torch.device, channels_last: bool = False
) -> Evaluation:
    """One pass over a loader that yields raw pictures; over all processes. The model's mode is left as it was."""
    was_training, layers = model.training, model.binary_layers()
    model.eval()
    meter, usage = Meter(sums={"top1": 0.0, "top5": 0.0, "loss": 0.0}), ExpertUsage()
    for images, labels in loader.epoch(0):
        if len(labels) == 0:  # a short last batch may leave a process without any
            continue
        logits = model(normalise.tensor(images.to(device), channels_last))
        labels = labels.to(device)
        top1, top5 = top_k(logits, labels)
        meter.add(len(labels), top1=top1, top5=top5, loss=F.cross_entropy(logits, labels).item())
        usage.add(layers)
    model.train(was_training)
    return Evaluation(**averages(meter, device), usage=usage.shares())
