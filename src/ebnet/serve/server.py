"""The server: a socket, uvicorn and its limits."""

import errno
import socket
from collections.abc import Callable

import uvicorn

from ebnet.errors import ConfigError
from ebnet.runtime.engine import Engine
from ebnet.serve.app import make_app
from ebnet.serve.protocol import PatientProtocol

LOOPBACK = ["127.0.0.1", "localhost", "::1"]


def run(engine: Engine, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve until interrupted; `ready` is told the address once it can be called."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        bound = socket.create_server((host, port), family=family)
    except OSError as error:
        reason = (error.strerror or str(error)).partition(" (while attempting")[0]
        other = (
            "--port" if error.errno in (errno.EADDRINUSE, errno.EACCES) else "--host (this machine has no such address)"
        )
        raise ConfigError(f"cannot listen on {host}:{port}: {reason}; try another {other}") from error
    local = host in ("127.0.0.1", "localhost", "::1")
    app = make_app(engine, LOOPBACK if local else None)
    config = uvicorn.Config(
        app, http=PatientProtocol, ws="none", log_level="warning", access_log=False, timeout_keep_alive=5
    )
    shown = f"[{host}]" if ":" in host else host
    with bound:
        ready(f"http://{shown}:{bound.getsockname()[1]}")
        uvicorn.Server(config).run(sockets=[bound])
