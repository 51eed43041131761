"""A web site on this machine, for what would be downloaded."""

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from ebnet.data.fetch import Source


class Site:
    """A web site of one directory, with ranges, that can be told to hang up early."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.requests: list[str] = []
        self.hang_up_after: int | None = None
        self.ranges = True
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                wanted = self.headers.get("Range", "")
                site.requests.append(wanted)
                body = site.files.get(self.path[1:])
                start = int(wanted[6:-1]) if wanted and site.ranges else 0
                if body is None or (start and start >= len(body)):
                    self.send_error(404 if body is None else 416)
                    return
                self.send_response(206 if start else 200)
                self.send_header("Content-Length", str(len(body) - start))
                self.end_headers()
                end = len(body) if site.hang_up_after is None else start + site.hang_up_after
                self.wfile.write(body[start:end])

            def log_message(self, *args: object) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def publish(self, name: str, data: bytes) -> Source:
        self.files[name] = data
        return Source(f"{self.url}/{name}", hashlib.md5(data).hexdigest())

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
