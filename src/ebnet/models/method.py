"""A method of the paper's comparison: what its paper published, and the network that it is here."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Method:
    """A row. Accuracy in %, BOPs in 1e9, FLOPs in 1e8, size in MB; None where the paper's tables print none."""

    name: str
    title: str
    paper: str
    year: int
    bits: str
    """Weights / activations."""
    settings: dict[str, Any] = field(hash=False)
    training: dict[str, Any] = field(default_factory=dict, hash=False, kw_only=True)
    """Settings of a recipe beside the network's."""
    top1: float | None = None
    top5: float | None = None
    bops: float | None = None
    flops: float | None = None
    megabytes: float | None = None
    decided: str = ""
    """What the paper leaves open, or is otherwise here."""
    differs: str = ""
    """Why its published costs are not those we count."""

    @property
    def one_bit(self) -> bool:
        """Whether it is a sum of one-bit convolutions, which the engine runs."""
        return self.bits.startswith(("1/1", "(1/1)"))
