"""The endpoint: right answers, and its limits."""

import asyncio
import contextlib
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
from ebnet.serve import work
from ebnet.serve.app import make_app
from ebnet.serve.picture import MAX_BYTES
from ebnet.serve.refusal import Refused
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
    """While answers hang, further requests wait their time and are told to come again; then all is well again."""
    release = threading.Event()
    real = work.classify

    def hanging(*arguments: object) -> object:
        release.wait(20)
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(work, "classify", hanging)
    digit = png(some_digits(1, "val").images[0, :, :, 0])

    async def scenario() -> tuple[list[httpx.Response], httpx.Response, str]:
        transport = httpx.ASGITransport(make_app(engine, seconds=0.5))
        async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as client:
            hung = await asyncio.gather(*(client.post("/predict", content=digit) for _ in range(20)))
            release.set()
            again = await client.post("/predict", content=digit)
            return hung, again, (await client.get("/metrics")).text

    hung, again, metrics = asyncio.run(scenario())
    assert {reply.status_code for reply in hung} == {503}
    assert "no answer within 0.5 s" in hung[0].json()["error"]
    assert hung[0].headers["retry-after"] == "1"
    assert again.status_code == 200
    assert 'ebnet_requests_total{status="503"} 20.0' in metrics
    assert 'ebnet_requests_total{status="200"} 1.0' in metrics
    assert "ebnet_waiting 0.0" in metrics


def test_what_is_held_is_given_back(engine: Engine) -> None:
    """Bytes, places and memory are all free again, whatever became of the requests."""
    works = work.Works(engine, 5)

    async def body(content: bytes) -> AsyncIterator[bytes]:
        yield content[: len(content) // 2]
        yield content[len(content) // 2 :]

    async def scenario() -> None:
        digit = png(some_digits(1, "val").images[0, :, :, 0])
        for content in (digit, b"", b"no image", digit[:60], b"x" * (MAX_BYTES + 1)):
            with contextlib.suppress(Refused):
                await works.predict("", body(content), False)
            await asyncio.sleep(0.01)

    asyncio.run(scenario())
    assert (works.bodies.taken, works.places.taken, works.pixels.taken) == (0, 0, 0)


def test_an_image_that_takes_too_much_memory_is_refused(client: TestClient) -> None:
    data = io.BytesIO()
    Image.new("RGBA", (6250, 6400)).save(data, "PNG")
    reply = client.post("/predict", content=data.getvalue())
    assert reply.status_code == 413
    assert "MB to decode" in reply.json()["error"]


@pytest.mark.parametrize("path", ["/nothing", "/predict"])
def test_errors_of_the_framework_are_json_too(client: TestClient, path: str) -> None:
    assert client.get(path).json()["error"].startswith(f"GET {path}: ")


def test_a_fault_of_the_server_is_json_too(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "classify", lambda *_: 1 / 0)
    with TestClient(make_app(engine), raise_server_exceptions=False) as client:
        reply = client.post("/predict", content=png(np.zeros((28, 28), np.uint8)))
    assert reply.status_code == 500
    assert reply.json() == {"error": "a fault of the server; its log says more"}


def test_says_images_stay_here_only_where_they_do(engine: Engine, client: TestClient) -> None:
    assert client.get("/network").json()["local"] is True
    assert TestClient(make_app(engine)).get("/network").json()["local"] is False
