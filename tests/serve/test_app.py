"""The endpoint: right answers, and its limits."""

import asyncio
import io
import threading
from collections.abc import AsyncIterator, Iterator

import httpx
import numpy as np
import pytest
from fastapi.testclient import TestClient
from PIL import Image

import ebnet
from ebnet.runtime.engine import Engine
from ebnet.serve import app as application
from ebnet.serve.app import MAX_WAITING, make_app
from ebnet.serve.picture import MAX_BYTES
from tests.tiny_run import TinyRun, some_digits


def png(pixels: np.ndarray) -> bytes:
    data = io.BytesIO()
    Image.fromarray(pixels).save(data, "PNG")
    return data.getvalue()


@pytest.fixture(scope="module")
def engine(tiny_run: TinyRun) -> Engine:
    return ebnet.load(tiny_run.packed)


@pytest.fixture(scope="module")
def client(engine: Engine) -> Iterator[TestClient]:
    with TestClient(make_app(engine, ["testserver"])) as client:
        yield client


def test_answers_what_the_engine_answers(client: TestClient, engine: Engine) -> None:
    for digit in some_digits(10, "val").images:
        answer = client.post("/predict", content=png(digit[:, :, 0])).json()
        logits = engine(digit[None])[0]
        assert answer["label"] == str(logits.argmax())
        assert np.argmax(answer["probabilities"]) == logits.argmax()
        assert sum(answer["probabilities"]) == pytest.approx(1)
        assert [layer["chosen"] for layer in answer["path"]] == engine.experts(digit[None])[:, 0].tolist()
        assert all(layer["experts"] == 3 for layer in answer["path"])
        assert answer["milliseconds"] > 0


def test_describes_the_network(client: TestClient, tiny_run: TinyRun) -> None:
    network = client.get("/network").json()
    assert network["arch"] == "1111-0.25-1:1:1:1"
    assert network["bytes"] == tiny_run.packed.stat().st_size
    assert network["classes"] == list("0123456789")


def test_pages_carry_headers_and_nothing_from_outside(client: TestClient) -> None:
    for path in ("/", "/page.css", "/page.js"):
        reply = client.get(path)
        assert reply.status_code == 200
        assert "default-src 'self'" in reply.headers["content-security-policy"]
        assert "http://" not in reply.text
        assert "https://" not in reply.text


@pytest.mark.parametrize(("content", "status"), [(b"", 400), (b"no image", 415), (b"x" * (MAX_BYTES + 1), 413)])
def test_refusals_are_json(client: TestClient, content: bytes, status: int) -> None:
    reply = client.post("/predict", content=content)
    assert reply.status_code == status
    assert reply.json()["error"]


def test_a_body_without_a_length_is_cut_off(client: TestClient) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(2 * MAX_BYTES >> 16):
            yield b"x" * (1 << 16)

    assert client.post("/predict", content=endless()).status_code == 413


def test_other_names_are_refused(client: TestClient) -> None:
    assert client.get("/network", headers={"Host": "elsewhere.example"}).status_code == 400


def test_wrong_method_and_path(client: TestClient) -> None:
    assert client.get("/predict").status_code == 405
    assert client.get("/../etc/passwd").status_code == 404
    assert client.post("/predict?invert=perhaps", content=b"x").status_code == 422


def test_a_slow_sender_is_let_go(engine: Engine) -> None:
    async def slow() -> AsyncIterator[bytes]:
        yield b"x"
        await asyncio.sleep(5)

    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(make_app(engine, seconds=0.2))
        async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as client:
            return await client.post("/predict", content=slow())

    reply = asyncio.run(send())
    assert reply.status_code == 408
    assert "arrive" in reply.json()["error"]


def test_too_many_and_too_slow(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """While answers hang, further requests are told to come again; when they are done, all is well again."""
    release = threading.Event()
    real = application.classify

    def hanging(*arguments: object) -> object:
        release.wait(20)
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(application, "classify", hanging)
    digit = png(some_digits(1, "val").images[0, :, :, 0])

    async def scenario() -> tuple[list[httpx.Response], httpx.Response, httpx.Response]:
        transport = httpx.ASGITransport(make_app(engine, seconds=0.5))
        async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as client:
            hung = await asyncio.gather(*(client.post("/predict", content=digit) for _ in range(MAX_WAITING)))
            refused = await client.post("/predict", content=digit)
            release.set()
            for _ in range(100):
                again = await client.post("/predict", content=digit)
                if again.status_code == 200:
                    break
                await asyncio.sleep(0.05)
            return hung, refused, again

    hung, refused, again = asyncio.run(scenario())
    assert {reply.status_code for reply in hung} == {503}
    assert refused.status_code == 503
    assert "at work" in refused.json()["error"]
    assert refused.headers["retry-after"] == "1"
    assert again.status_code == 200
