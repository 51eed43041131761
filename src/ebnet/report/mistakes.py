"""What a network gets wrong: which classes it takes for which, and the images that it fails worst on."""

from collections import Counter

import numpy as np

from ebnet.report.figure import Bars, Figure, Gallery, HeatMap, Series
from ebnet.report.observe import CLASSES_SHOWN, Observation, png

WORST, SIDE = 24, 56
PAIRS_SHOWN = 15


def mistakes(seen: Observation) -> list[Figure]:
    """The confusion matrix, or for many classes the pairs most confused; then the worst images."""
    present = [c for c in range(len(seen.classes)) if (seen.labels == c).any()]
    matrix: list[Figure] = [_confusion(seen)] if len(seen.classes) <= CLASSES_SHOWN else _pairs(seen)
    return [*matrix, _worst(seen)] if present else []


def _confusion(seen: Observation) -> HeatMap:
    counts = np.zeros((len(seen.classes), len(seen.classes)))
    np.add.at(counts, (seen.labels, seen.predicted), 1)
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    return HeatMap(
        "confusion",
        "Which class is taken for which",
        f"Percent of each class's images, of {len(seen.labels):,} test images; rows sum to 100. The diagonal is right.",
        seen.classes,
        seen.classes,
        shares.tolist(),
        "is",
        "taken for",
    )


def _pairs(seen: Observation) -> list[Figure]:
    wrong = seen.labels != seen.predicted
    found = Counter(zip(seen.labels[wrong].tolist(), seen.predicted[wrong].tolist(), strict=True))
    pairs = found.most_common(PAIRS_SHOWN)
    if not pairs:
        return []
    names = [f"{seen.classes[truth]} taken for {seen.classes[guess]}" for (truth, guess), _ in pairs]
    counts = [float(count) for _, count in pairs]
    return [
        Bars(
            "confusion",
            "Which class is most often taken for which",
            f"Images of {len(seen.labels):,} test images; the {len(pairs)} pairs that are confused most often.",
            names,
            [Series("images", counts, names)],
            [f"{count:.0f}" for count in counts],
        )
    ]


def _worst(seen: Observation) -> Gallery:
    """Those whose own class got the least probability: the greatest cross entropy."""
    order = np.argsort(seen.probabilities[:, 0], kind="stable")[:WORST]
    wrong = int((seen.labels != seen.predicted).sum())
    return Gallery(
        "worst-images",
        "The worst images",
        f"The {len(order)} images whose own class got the least probability, the worst first. "
        f"In all {wrong:,} of {len(seen.labels):,} are taken for another class.",
        [png(seen.pictures[i], SIDE) for i in order],
        [_caption(seen, int(i)) for i in order],
    )


def _caption(seen: Observation, index: int) -> str:
    truth, guess = seen.classes[seen.labels[index]], seen.classes[seen.predicted[index]]
    own, best = seen.probabilities[index]
    return f"{truth}: {own:.0%}" if truth == guess else f"{truth}: {own:.0%}\ntaken for {guess}: {best:.0%}"
