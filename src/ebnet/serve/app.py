"""The web application: a page, what the network is, and POST /predict."""

import asyncio
from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Any

from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, Response
from starlette.middleware.trustedhost import TrustedHostMiddleware

from ebnet.runtime.engine import Engine
from ebnet.serve.classify import Answer, class_names, classify
from ebnet.serve.picture import FORMATS, MAX_BYTES, MAX_PIXELS, Refused, decode

MAX_WAITING = 8
"""Requests at once; further ones are told to come again."""

SECONDS = 10.0
"""For a request to arrive whole, and again for it to be answered."""

_PAGES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
}
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' blob: data:; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def make_app(engine: Engine, hosts: list[str] | None = None, seconds: float = SECONDS) -> FastAPI:
    """The application around one engine.

    Args:
        hosts: names under which it may be called; others are refused, which keeps foreign pages in the same browser
            from reaching a server on the loopback address through a name of their own. None allows all.
        seconds: the limit of time, for a request to arrive and for its answer.
    """
    app = FastAPI(title="ebnet", docs_url=None, redoc_url=None, openapi_url=None)
    if hosts is not None:
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=hosts)
    line = _Line()

    @app.middleware("http")
    async def guard(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        response = await call_next(request)
        response.headers.update(_HEADERS)
        return response

    @app.exception_handler(Refused)
    async def refuse(request: Request, refusal: Refused) -> Response:
        # The rest of a body that was refused half-way is not read, so the connection cannot be used again.
        headers = {"Connection": "close"}
        if refusal.status == 503:
            headers["Retry-After"] = "1"
        return JSONResponse({"error": refusal.reason}, refusal.status, headers)

    for route, (name, kind) in _PAGES.items():
        content = files("ebnet.serve").joinpath("static", name).read_bytes()
        app.get(route)(_page(content, kind))

    @app.get("/network")
    def network() -> dict[str, Any]:
        return describe(engine)

    @app.post("/predict")
    async def predict(request: Request, invert: bool = False) -> dict[str, Any]:
        async with line:
            try:
                content = await asyncio.wait_for(_body(request), seconds)
            except TimeoutError:
                raise Refused(408, f"the image did not arrive within {seconds:g} s") from None
            work = asyncio.ensure_future(run_in_threadpool(_answer, engine, content, invert))
            line.hold_until(work)
            try:
                return (await asyncio.wait_for(asyncio.shield(work), seconds)).to_dict()
            except TimeoutError:
                raise Refused(503, f"no answer within {seconds:g} s; the machine is busy, try again") from None

    return app


def describe(engine: Engine) -> dict[str, Any]:
    """What the page needs to know about the network."""
    return {
        "arch": engine.network.get("arch"),
        "experts": engine.network.get("experts", 1),
        "classes": class_names(engine),
        "size": engine.preprocessing.size,
        "channels": engine.preprocessing.in_channels,
        "bytes": engine.file_bytes,
        "isa": engine.isa,
        "limits": {"bytes": MAX_BYTES, "pixels": MAX_PIXELS, "formats": FORMATS},
    }


class _Line:
    """Counts the requests at work; a thread that outlives its request keeps its place until it is done."""

    def __init__(self) -> None:
        self.waiting = 0

    async def __aenter__(self) -> None:
        if self.waiting >= MAX_WAITING:
            raise Refused(503, f"{MAX_WAITING} requests are at work already; try again")
        self.waiting += 1

    async def __aexit__(self, *_: object) -> None:
        self.waiting -= 1

    def hold_until(self, work: "asyncio.Future[Any]") -> None:
        self.waiting += 1

        def release(done: "asyncio.Future[Any]") -> None:
            self.waiting -= 1
            if not done.cancelled():
                done.exception()  # seen, even if nobody waits for the answer any more

        work.add_done_callback(release)


def _answer(engine: Engine, content: bytes, invert: bool) -> Answer:
    return classify(engine, decode(content, engine.preprocessing, invert))


async def _body(request: Request) -> bytes:
    """The body, refused as soon as it is known to be too long."""
    too_long = Refused(413, f"the image has more than {MAX_BYTES >> 20} MB")
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and int(announced) > MAX_BYTES:
        raise too_long
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > MAX_BYTES:
            raise too_long
    return bytes(content)


def _page(content: bytes, kind: str) -> Callable[[], Awaitable[Response]]:
    async def page() -> Response:
        return Response(content, media_type=kind)

    return page
