"""The confusion matrix and the worst images, of answers made up by hand."""

import io

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from ebnet.report.figure import Bars, Gallery, HeatMap
from ebnet.report.html import figure_html
from ebnet.report.mistakes import SIDE, mistakes
from ebnet.report.observe import Observation, spread_evenly


def seen(labels: list[int], predicted: list[int], own: list[float], classes: int = 3) -> Observation:
    count = len(labels)
    pictures = np.zeros((count, 4, 4, 1), np.uint8) + np.arange(count, dtype=np.uint8).reshape(-1, 1, 1, 1)
    sure = np.stack([own, np.full(count, 0.9)], 1)
    names = [f"<{c}>" for c in range(classes)]
    nothing = np.zeros((0, count), np.int64)
    return Observation(pictures, np.array(labels), np.array(predicted), sure, np.zeros((count, 2)), nothing, [], names)


def test_rows_are_what_an_image_is_and_columns_what_it_is_taken_for() -> None:
    matrix, _ = mistakes(seen([0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 0], [0.9, 0.9, 0.9, 0.1, 0.9, 0.2]))
    assert isinstance(matrix, HeatMap)
    assert matrix.values == [[0.75, 0.25, 0], [0.5, 0.5, 0], [0, 0, 0]]  # no image of class 2 was seen
    assert (matrix.row_label, matrix.column_label) == ("is", "taken for")


def test_the_worst_come_first_with_both_probabilities() -> None:
    _, worst = mistakes(seen([0, 1, 2], [0, 2, 2], [0.8, 0.05, 0.6]))
    assert isinstance(worst, Gallery)
    assert list(worst.captions) == ["<1>: 5%\ntaken for <2>: 90%", "<2>: 60%", "<0>: 80%"]
    shown = [Image.open(io.BytesIO(png)) for png in worst.images]
    assert [(image.size, image.getpixel((0, 0))) for image in shown] == [((SIDE, SIDE), i) for i in (1, 2, 0)]
    assert "1 of 3 are taken for another class" in worst.note
    assert "&lt;1&gt;: 5%<br>taken for &lt;2&gt;" in figure_html(worst)


def test_many_classes_are_told_by_the_pairs_most_confused() -> None:
    labels, predicted = [5, 5, 5, 7, 7, 9], [6, 6, 5, 8, 7, 9]
    pairs, _ = mistakes(seen(labels, predicted, [0.5] * 6, classes=100))
    assert isinstance(pairs, Bars)
    assert list(pairs.categories) == ["<5> taken for <6>", "<7> taken for <8>"]
    assert pairs.series[0].values == [2, 1]


def test_without_a_mistake_no_pairs() -> None:
    (worst,) = mistakes(seen([1, 2], [1, 2], [0.9, 0.8], classes=50))
    assert isinstance(worst, Gallery)


@given(total=st.integers(1, 5000), count=st.integers(1, 1200))
def test_images_are_spread_over_the_whole_set(total: int, count: int) -> None:
    """As evenly as whole numbers allow: 1,000 of 1,500 that are sorted by class are of all classes."""
    places = sorted(spread_evenly(total, count))
    assert len(places) == min(total, count)
    assert places[0] == 0
    gaps = np.diff([*places, total])
    assert gaps.min() >= 1
    assert gaps.max() - gaps.min() <= 1
