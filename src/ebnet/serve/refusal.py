"""Whatever goes wrong, a client gets `{"error": "..."}` and the fitting status."""

import http

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel
from starlette.exceptions import HTTPException


class Refused(Exception):
    """A request that is not answered, with the HTTP status and the reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


class Error(BaseModel):
    """The body of every answer that is not a success."""

    error: str


def refusal(status: int, reason: str, headers: dict[str, str] | None = None) -> Response:
    """The answer to a refused request."""
    return JSONResponse({"error": reason}, status, headers)


def answer_in_json(app: FastAPI) -> None:
    """Give every error of the application, of its framework too, the documented form."""

    @app.exception_handler(Refused)
    async def refused(request: Request, error: Refused) -> Response:
        # The rest of a body that was refused half-way is not read, so the connection cannot be used again.
        headers = {"Connection": "close"} | ({"Retry-After": "1"} if error.status == 503 else {})
        return refusal(error.status, error.reason, headers)

    @app.exception_handler(HTTPException)
    async def routing(request: Request, error: HTTPException) -> Response:
        reason = f"{request.method} {request.url.path}: {http.HTTPStatus(error.status_code).phrase.lower()}"
        return refusal(error.status_code, reason, dict(error.headers or {}))

    @app.exception_handler(RequestValidationError)
    async def parameters(request: Request, error: RequestValidationError) -> Response:
        faults = (f"{fault['loc'][-1]}={fault['input']!r}: {fault['msg']}" for fault in error.errors())
        return refusal(422, "; ".join(faults)[:500])

    @app.exception_handler(Exception)
    async def fault(request: Request, error: Exception) -> Response:
        return refusal(500, "a fault of the server; its log says more")
