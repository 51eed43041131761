"""The Pareto front of accuracy against cost."""

from collections.abc import Sequence


def undominated(points: Sequence[tuple[float, float]]) -> list[bool]:
    """For each (accuracy, cost): whether no other is at least as good in both and better in one."""
    return [
        not any(accuracy <= other and cost >= dear and (accuracy, cost) != (other, dear) for other, dear in points)
        for accuracy, cost in points
    ]
