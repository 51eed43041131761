"""Intervals of accuracies, against their definition, scipy's and the exact sum over the binomial distribution."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from ebnet.report.interval import Z, interval_told, wilson


@given(count=st.integers(1, 100_000), part=st.floats(0, 1))
def test_against_scipy(count: int, part: float) -> None:
    right = round(part * count)
    low, high = wilson(right / count, count)
    theirs = binomtest(right, count).proportion_ci(0.95, method="wilson")
    assert (low, high) == (pytest.approx(theirs.low, abs=1e-12), pytest.approx(theirs.high, abs=1e-12))


@given(count=st.integers(1, 10_000), part=st.floats(0, 1))
def test_its_ends_are_those_that_the_share_is_just_compatible_with(count: int, part: float) -> None:
    right = round(part * count) / count
    for end in wilson(right, count):
        if 0 < end < 1:
            assert abs(right - end) == pytest.approx(Z * (end * (1 - end) / count) ** 0.5, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("truth", [0.5, 0.9, 0.97])
def test_it_holds_the_truth_about_as_often_as_it_says(truth: float) -> None:
    count = 1000
    held = sum(binom.pmf(k, count, truth) for k in range(count + 1) if _holds(wilson(k / count, count), truth))
    assert 0.93 < held < 0.97


def _holds(interval: tuple[float, float], truth: float) -> bool:
    return interval[0] <= truth <= interval[1]


def test_told_in_percent() -> None:
    assert interval_told(0.9, 100) == "82.6 to 94.5"  # 0.8852 ± 0.0596, worked out by hand
    assert interval_told(1.0, 10) == "72.2 to 100.0"  # 10 / (10 + 3.84)
