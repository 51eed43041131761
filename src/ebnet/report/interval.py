"""How sure an accuracy is that was counted on so many images."""

from math import sqrt

Z = 1.959963984540054
"""Of 95 % of a normal distribution, both sides."""


def wilson(share: float, count: int) -> tuple[float, float]:
    """The 95 % interval of a share that was observed on `count` images (Wilson 1927).

    It solves |share - p| = Z sqrt(p (1 - p) / count) for p, so it stays within 0 and 1, at the ends too.
    """
    spread = Z * sqrt(share * (1 - share) / count + Z**2 / (4 * count**2))
    middle, whole = share + Z**2 / (2 * count), 1 + Z**2 / count
    return max(0.0, (middle - spread) / whole), min(1.0, (middle + spread) / whole)


def interval_told(share: float, count: int) -> str:
    """`95.8 to 97.9`, in percent."""
    low, high = wilson(share, count)
    return f"{100 * low:.1f} to {100 * high:.1f}"
