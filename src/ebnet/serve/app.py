"""The web application: a page, what the network is, POST /predict, and what an operator watches."""

import time
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import Response

from ebnet.runtime.engine import Engine
from ebnet.serve.classify import Answer, class_names
from ebnet.serve.picture import FORMATS, MAX_BYTES, MAX_PIXELS
from ebnet.serve.refusal import Error, Refused, answer_in_json, refusal
from ebnet.serve.work import SECONDS, Works
from ebnet.web.static_files import KINDS, content

_PAGES = {"/": "index.html", "/page.css": "page.css", "/page.js": "page.js", "/answers.js": "server.js"}
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' blob: data:; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_REFUSALS: dict[int | str, dict[str, Any]] = {status: {"model": Error} for status in (400, 408, 413, 415, 422, 503)}
_BODY = {
    "required": True,
    "content": {f"image/{name.lower()}": {"schema": {"type": "string", "format": "binary"}} for name in FORMATS},
}


def make_app(engine: Engine, hosts: list[str] | None = None, seconds: float = SECONDS) -> FastAPI:
    """The application around one engine.

    Args:
        hosts: names under which it may be called; others are refused, which keeps foreign pages in the same browser
            from reaching a server on the loopback address through a name of their own. None allows all.
        seconds: the limit of time, for a request to arrive and for its answer.
    """
    app = FastAPI(title="ebnet", docs_url=None, redoc_url=None)
    works = Works(engine, seconds)
    answer_in_json(app)

    @app.middleware("http")
    async def guard(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        if hosts is not None and request.url.hostname not in hosts:
            response = refusal(400, f"this server is not called {request.url.hostname}")
        else:
            response = await call_next(request)
        response.headers.update(_HEADERS)
        return response

    for route, name in _PAGES.items():
        app.get(route, include_in_schema=False)(_page(content(name), KINDS[name.rsplit(".")[-1]]))

    @app.get("/network")
    def network() -> dict[str, Any]:
        """What the network is."""
        return describe(engine) | {"local": hosts is not None}

    @app.get("/metrics", include_in_schema=False)
    async def metrics() -> Response:
        return works.metrics.page()

    @app.post("/predict", responses=_REFUSALS, openapi_extra={"requestBody": _BODY})
    async def predict(request: Request, invert: bool = False) -> Answer:
        """Classify the image whose bytes are the body."""
        begin, status = time.monotonic(), 500
        try:
            answer = await works.predict(request.headers.get("content-length", ""), request.stream(), invert)
            status = 200
            return answer
        except Refused as refused:
            status = refused.status
            raise
        finally:
            works.metrics.requests.labels(status).inc()
            works.metrics.seconds.observe(time.monotonic() - begin)

    return app


def describe(engine: Engine) -> dict[str, Any]:
    """What the page needs to know about the network."""
    return {
        "arch": engine.network.get("arch"),
        "experts": max(engine.expert_counts, default=1),
        "classes": class_names(engine),
        "size": engine.preprocessing.size,
        "channels": engine.preprocessing.in_channels,
        "bytes": engine.file_bytes,
        "isa": engine.isa,
        "limits": {"bytes": MAX_BYTES, "pixels": MAX_PIXELS, "formats": FORMATS},
    }


def _page(content: bytes, kind: str) -> Callable[[], Awaitable[Response]]:
    async def page() -> Response:
        return Response(content, media_type=kind)

    return page
