"""A batch by the expert chosen for each sample."""

from collections.abc import Iterator
from functools import cached_property

import torch
from torch import Tensor


class Samples:
    """The expert of each sample, from one-hot gate rows [batch, experts]; iterates over (expert, its samples' indices).

    Experts without samples are left out; indices are in order.

    Attributes:
        chosen: [batch], int64.
    """

    def __init__(self, gate: Tensor) -> None:
        self.chosen = gate.argmax(1)
        self.experts = gate.shape[1]

    def __iter__(self) -> Iterator[tuple[int, Tensor]]:
        return iter(self._by_expert)

    @cached_property
    def _by_expert(self) -> list[tuple[int, Tensor]]:
        order = torch.argsort(self.chosen, stable=True)
        counts = torch.bincount(self.chosen, minlength=self.experts).tolist()
        return [(expert, samples) for expert, samples in enumerate(order.split(counts)) if len(samples)]


def rows_of(x: Tensor, samples: Tensor) -> Tensor:
    """The samples of `x`; all of them without a copy (they are in order then)."""
    return x if len(samples) == len(x) else x.index_select(0, samples)
