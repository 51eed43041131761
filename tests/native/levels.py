"""Tests of every level of some vector kernels: those that this CPU lacks are skipped with that reason."""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

SEEDS = st.integers(0, 2**32 - 1)


def few(examples: int) -> settings:
    return settings(max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def each_level(levels: list[tuple[str, bool]]) -> Callable[[pytest.FixtureRequest], str]:
    """A fixture `level` over the names; with each stands whether it runs here."""
    runs_here = dict(levels)

    @pytest.fixture(params=list(runs_here))
    def level(request: pytest.FixtureRequest) -> str:
        if not runs_here[request.param]:
            pytest.skip(f"this CPU has not the instructions of the level {request.param}")
        return str(request.param)

    return level
