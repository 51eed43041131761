"""What requests share: nothing is lost, the small pass the large, and waiting ends."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebnet.serve.budget import Budget, Spent


def test_small_ones_pass_a_large_one_that_waits() -> None:
    async def scenario() -> None:
        budget = Budget(10)
        await budget.take(6, 1)
        large = asyncio.ensure_future(budget.take(9, 1))
        await asyncio.sleep(0)
        await budget.take(3, 0.1)
        assert not large.done()
        budget.give(3)
        budget.give(6)
        await large
        assert budget.taken == 9

    asyncio.run(scenario())


def test_waiting_ends_and_takes_nothing() -> None:
    async def scenario() -> None:
        budget = Budget(1)
        await budget.take(1, 1)
        with pytest.raises(Spent):
            await budget.take(1, 0.01)
        assert (budget.taken, budget.waiting) == (1, 0)

    asyncio.run(scenario())


@given(st.lists(st.tuples(st.integers(1, 5), st.booleans()), max_size=12))
def test_everything_comes_back(requests: list[tuple[int, bool]]) -> None:
    """Whether the caller gave up while it waited, in the moment it was served, or never."""

    async def scenario() -> None:
        budget = Budget(5)

        async def one(amount: int, gives_up: bool) -> None:
            task = asyncio.ensure_future(budget.take(amount, 5))
            await asyncio.sleep(0)
            if gives_up:
                task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                return
            assert budget.free >= 0
            await asyncio.sleep(0)
            budget.give(amount)

        await asyncio.gather(*(one(amount, gives_up) for amount, gives_up in requests))
        assert (budget.free, budget.waiting) == (5, 0)

    asyncio.run(scenario())
