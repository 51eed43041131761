"""What is measured: accuracy, loss terms, expert usage; reduced over processes."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ebnet.names import spoken
from ebnet.runs.state import Meter
from ebnet.train.distributed import sum_over_ranks


def averages(meter: Meter, device: torch.device | None = None) -> dict[str, float]:
    """Over all processes, each of which must have added the same names."""
    names = sorted(meter.sums)
    values = torch.tensor([meter.count, *(meter.sums[name] for name in names)], dtype=torch.float64, device=device)
    count, *sums = sum_over_ranks(values).tolist()
    return {name: total / max(count, 1.0) for name, total in zip(names, sums, strict=True)}


def top_k(logits: Tensor, labels: Tensor) -> tuple[float, float]:
    """The shares of pictures whose class is the first, and is among the first five, of the predictions."""
    best = logits.topk(min(5, logits.shape[1]), dim=1).indices == labels[:, None]
    return best[:, 0].float().mean().item(), best.any(1).float().mean().item()


class ExpertUsage:
    """How often each layer picked each expert."""

    def __init__(self) -> None:
        self.counts: dict[str, Tensor] = {}

    def add(self, layers: Mapping[str, Any]) -> None:
        """Take in the choices of the layers' last forward pass; layers of one expert have none to make."""
        for name, layer in layers.items():
            experts, chosen = layer.num_experts, getattr(layer, "last_experts", None)
            if experts > 1 and isinstance(chosen, Tensor):
                picked = torch.bincount(chosen, minlength=experts).double()
                self.counts[name] = self.counts[name] + picked if name in self.counts else picked

    def shares(self) -> dict[str, list[float]]:
        """For each layer the fraction of pictures of each expert, over all processes."""
        return {
            name: (total / total.sum().clamp(min=1)).tolist()
            for name, total in ((name, sum_over_ranks(count.clone())) for name, count in self.counts.items())
        }


def collapsed(usage: dict[str, list[float]], threshold: float) -> list[str]:
    """A sentence for each layer in which one expert takes more than `threshold` of the pictures."""
    return [
        f"expert {shares.index(max(shares))} of {spoken(name)} takes {max(shares):.1%} of the images"
        for name, shares in usage.items()
        if max(shares) > threshold
    ]
