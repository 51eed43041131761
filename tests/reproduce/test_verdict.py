"""Verdicts against numbers worked out by hand."""

from math import isnan, sqrt

import pytest

from ebnet.reproduce.verdict import Finding, Run
from ebnet.reproduce.words import DOES_NOT_SHOW, NOT_RUN, SHOWS, UNDECIDED


def finding(*values: float, bar: float = 1.0, equal: bool = False) -> Finding:
    return Finding("a against b", dict(enumerate(values)), bar, True, equal)


def test_mean_and_standard_error() -> None:
    found = finding(1.0, 2.0, 3.0)
    assert found.mean == 2.0
    assert found.error == pytest.approx(1 / sqrt(3))  # standard deviation 1, three seeds


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        # Three seeds: t = 2.920. 1, 2, 3 has mean 2 and 2.92 / sqrt(3) = 1.69 beside it.
        ((1.0, 2.0, 3.0), SHOWS),
        # Shifted by -0.4: 1.6 - 1.69 < 0, and 1.6 + 1.69 is above the bar of 1.
        ((0.6, 1.6, 2.6), UNDECIDED),
        # -1 + 1.69 = 0.69 < 1.
        ((-2.0, -1.0, 0.0), DOES_NOT_SHOW),
        ((0.1, 0.1, 0.1), SHOWS),
        ((0.0, 0.0, 0.0), DOES_NOT_SHOW),
        ((5.0, 5.0), UNDECIDED),
        ((), NOT_RUN),
    ],
)
def test_gain(values: tuple[float, ...], verdict: str) -> None:
    assert finding(*values).verdict == verdict


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ((-0.1, 0.0, 0.1), SHOWS),  # 0 + 2.92 * 0.1 / sqrt(3) = 0.17 < 1
        ((0.0, 1.0, 2.0), UNDECIDED),
        ((3.0, 3.1, 2.9), DOES_NOT_SHOW),
        ((-3.0, -3.1, -2.9), DOES_NOT_SHOW),
    ],
)
def test_equality(values: tuple[float, ...], verdict: str) -> None:
    assert finding(*values, equal=True).verdict == verdict


def test_one_seed_has_no_error() -> None:
    assert isnan(finding(1.0).error)


def test_stage_one_is_the_last_phase_of_it_whether_or_not_stage_two_follows() -> None:
    one, four = {"stage": "stage1-one-expert", "top1": 0.5}, {"stage": "stage1-experts", "top1": 0.6}
    last = {"stage": "stage2", "top1": 0.4, "epochs": [{"top1": 0.1}]}
    for stages, stage1 in (((one, four, last), 60.0), ((one, last), 50.0)):
        assert Run("a", 0, stages).accuracy("stage1") == stage1
        assert Run("a", 0, stages).accuracy("stage2") == 40.0
        assert Run("a", 0, stages).accuracy("first-epoch") == 10.0
        assert Run("a", 0, stages).accuracy("training") is None  # records of before
        assert Run("a", 0, (*stages[:-1], last | {"train_top1": 0.7})).accuracy("training") == 70.0
    for stages, stage1 in (((one, four), 60.0), ((one,), 50.0)):
        assert Run("a", 0, stages).accuracy("stage1") == stage1
        assert Run("a", 0, stages).accuracy("stage2") is None


def test_a_way_is_told_before_what_is_compared() -> None:
    assert Finding("a against b", {}, 1.0, True, way="at equal training").told == "at equal training: a against b"
    assert finding(1.0).told == "a against b"
