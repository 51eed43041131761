"""The page of digits answers as soon as it is opened."""

import pytest

from tests.browser import CHROMIUM


def test_the_first_answer_comes_within_300_milliseconds() -> None:
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    from web_page import measure

    # The best of some, and of some more where other work shares the cores.
    best = min(measure("zoo:digits-e4", 6))
    for _ in range(4):
        best = best if best < 300 else min(measure("zoo:digits-e4", 6))
    assert best < 300
