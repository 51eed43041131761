"""Axes: round numbers for ticks, and numbers as people write them."""

import math
from dataclasses import dataclass

from ebnet.cost.table import short


@dataclass(frozen=True)
class Scale:
    """An interval of numbers, laid onto 0 to 100 percent of an axis."""

    start: float
    end: float
    ticks: tuple[float, ...]

    def percent(self, value: float) -> float:
        return 100 * (value - self.start) / (self.end - self.start)


def make_scale(low: float, high: float, count: int = 5) -> Scale:
    """From the round number below `low` to the one above `high`, with about `count` ticks at 1, 2 or 5 times 10^n."""
    if high <= low:
        spread = abs(low) * 0.1 or 1.0
        low, high = low - spread, high + spread
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = power * next(m for m in (1, 2, 5, 10) if m * power >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return Scale(first * step, last * step, tuple(round(i * step, 12) for i in range(first, last + 1)))


def number(value: float) -> str:
    """A tick's label: 0.25, 40, 1.7M."""
    return short(round(value)) if abs(value) >= 1e4 else f"{value:.6g}"
