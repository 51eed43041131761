"""Axes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebnet.report.scale import make_scale, number


def test_ticks_are_round() -> None:
    scale = make_scale(71.3, 99.2)
    assert scale.ticks == (70, 80, 90, 100)
    assert (scale.percent(70), scale.percent(100), scale.percent(85)) == (0, 100, 50)


@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9))
def test_every_interval_is_covered_by_a_few_ticks(low: float, extent: float) -> None:
    extent = max(extent, 1e-6 * abs(low))  # an axis of a narrower interval would need more digits than it can show
    scale = make_scale(low, low + extent)
    slack = 1e-6 * (scale.end - scale.start)
    assert scale.start - slack <= low
    assert low + extent <= scale.end + slack
    assert 2 <= len(scale.ticks) <= 9


@pytest.mark.parametrize("value", [0.0, 3.0, -2.5])
def test_one_value_still_makes_an_axis(value: float) -> None:
    scale = make_scale(value, value)
    assert scale.start < value < scale.end


@pytest.mark.parametrize(("value", "text"), [(0.25, "0.25"), (40, "40"), (1.7e6, "1.7M"), (0, "0")])
def test_numbers_as_people_write_them(value: float, text: str) -> None:
    assert number(value) == text
