"""HTTP that does not wait for ever: a request's headers arrive in time, and what is no HTTP is told so in JSON."""

import asyncio
import json
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_SECONDS = 5.0
"""For the headers of a request to arrive, counted from its first byte (or from the connection, if none comes).

uvicorn itself waits for ever: a few dozen clients that send half a header would hold all connections.
"""

MAX_CONNECTIONS = 512
"""At once; the oldest that has not sent a whole header makes room for a new one."""


class PatientProtocol(H11Protocol):
    """uvicorn's protocol with a limit of time on headers and documented errors."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_headers()
        if len(self.connections) > MAX_CONNECTIONS:
            self._make_room()

    def data_received(self, data: bytes) -> None:
        if self._between_requests:
            self._expect_headers()
        super().data_received(data)
        if not self._between_requests:
            self._forget_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_deadline()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        self._forget_deadline()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, msg.rstrip("."))

    @property
    def _between_requests(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _expect_headers(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(HEADER_SECONDS, self._too_slow)

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_slow(self) -> None:
        self._deadline = None
        if self._between_requests and not self.transport.is_closing():
            self._refuse(408, f"the headers did not arrive within {HEADER_SECONDS:g} s")

    def _make_room(self) -> None:
        """Close the connection that has waited longest for its headers; if all are at work, this one."""
        waiting: list[Any] = [
            c for c in self.connections if getattr(c, "_deadline", None) is not None and c is not self
        ]
        oldest = min(waiting, key=lambda c: c._deadline.when(), default=self)
        oldest._refuse(503, f"{MAX_CONNECTIONS} connections are open already; try again")

    def _refuse(self, status: int, reason: str) -> None:
        body = json.dumps({"error": reason}).encode()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            headers = [
                ("content-type", "application/json"),
                ("content-length", str(len(body))),
                ("connection", "close"),
            ]
            events = (h11.Response(status_code=status, headers=headers), h11.Data(data=body), h11.EndOfMessage())
            self.transport.write(b"".join(self.conn.send(event) or b"" for event in events))
        self.transport.close()
