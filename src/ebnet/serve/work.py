"""Requests at work within a budget of memory, of places and of time."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable

from fastapi.concurrency import run_in_threadpool

from ebnet.runtime.engine import Engine
from ebnet.serve.budget import Budget, Spent
from ebnet.serve.classify import Answer, classify
from ebnet.serve.metrics import Metrics
from ebnet.serve.picture import MAX_BYTES, decode, memory_to_decode
from ebnet.serve.refusal import Refused

SECONDS = 10.0
"""For a request to arrive whole, and again for it to be answered."""

BODY_BYTES = 32 << 20
"""Of received images that are held at once. Those that wait longer are small: a decoded image is let go."""

DECODING_BYTES = 224 << 20
"""That decoders may take at once, all requests together; an image that takes more alone is refused."""


class Works:
    """Classifies uploaded images for any number of clients."""

    def __init__(self, engine: Engine, seconds: float) -> None:
        self.engine, self.seconds = engine, seconds
        self.places = Budget(os.cpu_count() or 1)
        self.bodies = Budget(BODY_BYTES)
        self.pixels = Budget(DECODING_BYTES)
        self.metrics = Metrics(self.places, self.bodies, self.pixels)

    async def predict(self, announced: str, chunks: AsyncIterator[bytes], invert: bool) -> Answer:
        """The answer for the image whose bytes arrive in chunks.

        Args:
            announced: the request's Content-Length, if it has one.
        """
        content = bytearray()
        try:
            try:
                await asyncio.wait_for(self._receive(announced, chunks, content), self.seconds)
            except TimeoutError:
                raise Refused(408, f"the image did not arrive within {self.seconds:g} s") from None
            return await self._answer(bytes(content), invert)
        finally:
            self.bodies.give(len(content))

    async def _receive(self, announced: str, chunks: AsyncIterator[bytes], content: bytearray) -> None:
        """Append to `content`, refused as soon as it is known to be too long; every byte in it is in the budget."""
        too_long = Refused(413, f"the image has more than {MAX_BYTES >> 20} MB")
        if announced.isdigit() and int(announced) > MAX_BYTES:
            raise too_long
        async for chunk in chunks:
            if len(content) + len(chunk) > MAX_BYTES:
                raise too_long
            if not self.bodies.take_now(len(chunk)):
                raise Refused(503, f"images of {BODY_BYTES >> 20} MB are waiting already; try again")
            content += chunk

    async def _answer(self, content: bytes, invert: bool) -> Answer:
        until = time.monotonic() + self.seconds
        memory = await run_in_threadpool(memory_to_decode, content)
        if memory > self.pixels.total:
            raise Refused(413, f"the image takes {memory >> 20} MB to decode, more than {self.pixels.total >> 20}")
        try:
            await self.pixels.take(memory, until - time.monotonic())
            try:
                await self.places.take(1, until - time.monotonic())
            except BaseException:
                self.pixels.give(memory)
                raise
        except Spent:
            raise self._too_busy() from None

        def release() -> None:
            self.places.give(1)
            self.pixels.give(memory)

        work = asyncio.ensure_future(run_in_threadpool(_decode_and_classify, self.engine, content, invert, until))
        return await _unless_late(work, until, release, self._too_busy())

    def _too_busy(self) -> Refused:
        return Refused(503, f"no answer within {self.seconds:g} s; the machine is busy, try again")


def _decode_and_classify(engine: Engine, content: bytes, invert: bool, until: float) -> Answer:
    picture = decode(content, engine.preprocessing, invert, until)
    return classify(engine, picture)


async def _unless_late(
    work: "asyncio.Future[Answer]", until: float, release: Callable[[], None], late: Refused
) -> Answer:
    """The result of a thread that cannot be stopped at once: what it holds is given back when it really ends."""

    def ended(done: "asyncio.Future[Answer]") -> None:
        release()
        if not done.cancelled():
            done.exception()  # seen, even if nobody waits for the answer any more

    work.add_done_callback(ended)
    try:
        return await asyncio.wait_for(asyncio.shield(work), until - time.monotonic())
    except TimeoutError:
        raise late from None
