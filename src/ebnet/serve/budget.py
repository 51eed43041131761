"""What requests share and wait for: places at work, and bytes of memory."""

import asyncio


class Spent(Exception):
    """What was asked for did not come free in time."""


class Budget:
    """An amount that requests take from and give back.

    Whoever fits goes on, in the order of asking: a large request that has to wait does not hold up the small ones
    behind it.
    """

    def __init__(self, total: int) -> None:
        self.total = self.free = total
        self._line: list[tuple[int, asyncio.Future[None]]] = []

    @property
    def taken(self) -> int:
        return self.total - self.free

    @property
    def waiting(self) -> int:
        return len(self._line)

    def take_now(self, amount: int) -> bool:
        """Take without waiting; False if there is not as much."""
        if amount > self.free:
            return False
        self.free -= amount
        return True

    async def take(self, amount: int, seconds: float) -> None:
        """Take, after waiting at most so long; then `Spent`."""
        if self.take_now(amount):
            return
        place = (amount, asyncio.get_running_loop().create_future())
        self._line.append(place)
        try:
            await asyncio.wait_for(asyncio.shield(place[1]), seconds)
        except BaseException as error:
            if place[1].done():  # served in the very moment in which the caller gave up
                self.give(amount)
            else:
                self._line.remove(place)
            if isinstance(error, TimeoutError):
                raise Spent from None
            raise

    def give(self, amount: int) -> None:
        """Give back what was taken."""
        self.free += amount
        for place in list(self._line):
            if self.take_now(place[0]):
                self._line.remove(place)
                place[1].set_result(None)
