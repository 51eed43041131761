"""The page of digits answers as soon as it is opened."""

from statistics import median

import pytest

from tests.browser import CHROMIUM


def test_the_first_answer_comes_in_four_times_the_time_of_an_empty_page() -> None:
    """In turns, so that a slow or busy machine slows both alike; it is about three times, quiet or not."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    from web_page import measure

    answers, nothing = measure("zoo:digits-e4", 15)
    assert median(answers) < 4 * median(nothing)
