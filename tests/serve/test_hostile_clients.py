"""A real server under clients that mean it no good: ordinary ones are served all the while, and memory stays small."""

import asyncio
import io
import random
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from ebnet.cli.app import app
from ebnet.serve.protocol import HEADER_SECONDS
from tests.tiny_run import TinyRun

MOST_MEGABYTES = 400
CLIENTS = 50


@dataclass
class Server:
    url: str
    process: subprocess.Popen[str]

    @property
    def address(self) -> tuple[str, int]:
        host, port = self.url.removeprefix("http://").split(":")
        return host, int(port)

    @property
    def peak_megabytes(self) -> float:
        with open(f"/proc/{self.process.pid}/status") as status:
            return int(re.search(r"VmHWM:\s+(\d+) kB", status.read())[1]) / 1024  # type: ignore[index]


@pytest.fixture(scope="module")
def server(tiny_run: TinyRun) -> Iterator[Server]:
    command = [sys.executable, "-m", "ebnet", "serve", tiny_run.packed.name, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tiny_run.packed.parent) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            address = re.search(r"http://\S+", line)
            assert address, line
            yield Server(address[0], process)
        finally:
            process.terminate()  # also where it said something else: leaving the block waits for its end


def encoded(image: Image.Image) -> bytes:
    data = io.BytesIO()
    image.save(data, "PNG")
    return data.getvalue()


DIGIT = encoded(Image.fromarray(np.random.default_rng(0).integers(0, 256, (28, 28), np.uint8)))


async def ordinary(server: Server, requests: int) -> list[int]:
    """CLIENTS clients at once, each with so many small images one after another: the statuses of all."""
    limits = httpx.Limits(max_connections=CLIENTS)
    async with httpx.AsyncClient(base_url=server.url, limits=limits, timeout=30) as client:

        async def one() -> list[int]:
            return [(await client.post("/predict", content=DIGIT)).status_code for _ in range(requests)]

        return [status for statuses in await asyncio.gather(*(one() for _ in range(CLIENTS))) for status in statuses]


def test_fifty_clients_are_all_served(server: Server) -> None:
    assert set(asyncio.run(ordinary(server, 5))) == {200}


def test_images_that_decode_to_much(server: Server) -> None:
    """Eight that would take a gigabyte each, and eight as large as is allowed, while others are served."""
    huge, large = encoded(Image.new("RGBA", (6250, 6400))), encoded(Image.new("RGBA", (4600, 4600)))

    async def scenario() -> tuple[list[int], list[int], list[int]]:
        async with httpx.AsyncClient(base_url=server.url, timeout=30) as client:

            async def send(content: bytes) -> int:
                return (await client.post("/predict", content=content)).status_code

            hostile = asyncio.gather(*(send(huge) for _ in range(8)))
            heavy = asyncio.gather(*(send(large) for _ in range(8)))
            served = await ordinary(server, 3)
            return await hostile, await heavy, served

    hostile, heavy, served = asyncio.run(scenario())
    assert set(hostile) == {413}
    assert set(heavy) <= {200, 503}
    assert 200 in heavy
    assert set(served) == {200}
    assert server.peak_megabytes < MOST_MEGABYTES


def test_half_sent_headers_block_nobody(server: Server) -> None:
    idle = [socket.create_connection(server.address) for _ in range(80)]
    for connection in idle:
        connection.sendall(b"POST /predict HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
    assert set(asyncio.run(ordinary(server, 2))) == {200}
    idle[0].settimeout(2 * HEADER_SECONDS)
    answer = idle[0].recv(4096)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b'{"error": "the headers did not arrive within 5 s"}' in answer
    assert idle[0].recv(1) == b""
    for connection in idle:
        connection.close()


def test_what_is_no_http_is_told_so_in_json(server: Server) -> None:
    with socket.create_connection(server.address) as connection:
        connection.sendall(b"\x16\x03\x01 hello\r\n\r\n")
        answer = connection.recv(4096)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b'{"error": "' in answer


def test_a_thousand_bad_requests(server: Server) -> None:
    """Every answer is the documented JSON, none is a fault of the server, and nothing piles up."""
    generator = random.Random(0)

    def bad() -> tuple[str, str, bytes]:
        damaged = bytearray(DIGIT)
        for _ in range(4):
            damaged[generator.randrange(8, len(damaged))] = generator.randrange(256)
        return generator.choice(
            [
                ("POST", "/predict", generator.randbytes(generator.randrange(2000))),
                ("POST", "/predict", bytes(damaged[: generator.randrange(1, len(damaged))])),
                ("POST", "/predict?invert=perhaps", DIGIT),
                ("DELETE", "/predict", b""),
                ("GET", f"/{generator.randbytes(4).hex()}", b""),
            ]
        )

    async def scenario() -> list[httpx.Response]:
        async with httpx.AsyncClient(base_url=server.url, timeout=30) as client:
            gate = asyncio.Semaphore(20)

            async def one() -> httpx.Response:
                method, path, content = bad()
                async with gate:
                    return await client.request(method, path, content=content)

            return await asyncio.gather(*(one() for _ in range(1000)))

    for reply in asyncio.run(scenario()):
        assert reply.status_code == 200 or (400 <= reply.status_code < 500 and list(reply.json()) == ["error"])
    assert server.peak_megabytes < MOST_MEGABYTES
    metrics = httpx.get(f"{server.url}/metrics").text
    assert "ebnet_at_work 0.0" in metrics
    assert "ebnet_body_bytes 0.0" in metrics


def test_keeps_what_its_description_promises(server: Server) -> None:
    """schemathesis reads /openapi.json and tries what it allows and what it does not."""
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{server.url}/openapi.json", "--max-examples", "60"]
    # Bytes that are no image are within the schema's words, and rightly refused.
    command += ["--exclude-checks", "positive_data_acceptance", "--seed", "1", "--no-color"]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stdout[-4000:] + outcome.stderr[-1000:]


@pytest.mark.parametrize(
    ("host", "complaint"),
    [
        ("203.0.113.9", "cannot listen on 203.0.113.9:0: Cannot assign requested address; try another --host"),
        ("nosuch.invalid", "cannot listen on nosuch.invalid:0: Name or service not known; try another --host"),
    ],
)
def test_an_address_that_cannot_be_bound_says_so(tiny_run: TinyRun, host: str, complaint: str) -> None:
    outcome = CliRunner().invoke(app, ["serve", str(tiny_run.packed), "--host", host, "--port", "0"])
    assert complaint in str(outcome.exception)


def test_a_port_that_is_taken_says_so(tiny_run: TinyRun, server: Server) -> None:
    port = server.address[1]
    outcome = CliRunner().invoke(app, ["serve", str(tiny_run.packed), "--port", str(port)])
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use; try another --port" in str(outcome.exception)
