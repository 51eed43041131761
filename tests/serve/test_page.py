"""`ebnet serve` as a process, clicked through in a browser."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Browser, expect

from ebnet.cli.app import app
from tests.browser import watch
from tests.tiny_run import TinyRun, some_digits


@pytest.fixture(scope="module")
def address(tiny_run: TinyRun) -> Iterator[str]:
    command = [sys.executable, "-m", "ebnet", "serve", str(tiny_run.packed), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={"COLUMNS": "300"}) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        assert "http://127.0.0.1:" in line
        yield line.split(" is at ")[1].split()[0]
        server.terminate()


@pytest.fixture(scope="module")
def digit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("digit") / "digit.png"
    Image.fromarray(some_digits(10, "val").images[3, :, :, 0]).save(path)
    return path


def test_draw_a_digit(address: str, browser: Browser) -> None:
    seen = watch(browser)
    page = seen.page
    page.goto(address)
    expect(page.locator("#network")).to_contain_text("3 experts per layer")
    box = page.locator("#pad").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 90, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 150, box["y"] + 240, steps=6)
    page.mouse.up()
    expect(page.locator("#answer")).to_be_visible()
    expect(page.locator("#label")).not_to_be_empty()
    expect(page.locator("#latency")).to_contain_text("ms in the engine")
    expect(page.locator("#probabilities .bar")).to_have_count(10)
    expect(page.locator("#path .choices")).to_have_count(8)
    expect(page.locator("#path .chosen")).to_have_count(8)
    expect(page.locator("#path div").first).to_have_text("layer 0.0.0")
    page.click("#clear")
    expect(page.locator("#answer")).to_be_hidden()
    expect(page.locator("#hint")).to_be_visible()
    assert seen.complaints == []
    assert all(url.startswith((address, "data:", "blob:")) for url in seen.requests)


def test_choose_and_drop_an_image(address: str, browser: Browser, digit: Path, tmp_path: Path) -> None:
    seen = watch(browser)
    page = seen.page
    page.goto(address)
    page.set_input_files("#file", digit)
    expect(page.locator("#answer")).to_be_visible()
    expect(page.locator("#shown")).to_be_visible()
    with page.expect_response("**/predict?invert=true"):
        page.check("#invert")

    page.click("#clear")
    expect(page.locator("#answer")).to_be_hidden()
    content = list(digit.read_bytes())
    transfer = page.evaluate_handle(
        "bytes => { const d = new DataTransfer();"
        "d.items.add(new File([new Uint8Array(bytes)], 'digit.png', {type: 'image/png'})); return d; }",
        content,
    )
    page.dispatch_event("#drop", "drop", {"dataTransfer": transfer})
    expect(page.locator("#answer")).to_be_visible()
    assert seen.complaints == []

    broken = tmp_path / "broken.png"
    broken.write_bytes(b"not a picture")
    page.set_input_files("#file", broken)
    expect(page.locator("#error")).to_contain_text("not an image")
    expect(page.locator("#answer")).to_be_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_narrow_and_dark(address: str, browser: Browser, digit: Path, scheme: str) -> None:
    seen = watch(browser, width=340, scheme=scheme)
    seen.page.goto(address)
    seen.page.set_input_files("#file", digit)
    expect(seen.page.locator("#answer")).to_be_visible()
    assert not seen.overflows
    before = seen.ground
    assert before == {"light": "rgb(255, 255, 255)", "dark": "rgb(18, 22, 28)"}[scheme]
    seen.page.click("#theme")
    assert seen.ground != before


def test_taken_port_and_broken_file(tiny_run: TinyRun, tmp_path: Path, address: str) -> None:
    from typer.testing import CliRunner

    from ebnet.errors import ConfigError, FormatError

    port = address.rsplit(":", 1)[1]
    taken = CliRunner().invoke(app, ["serve", str(tiny_run.packed), "--port", port])
    assert isinstance(taken.exception, ConfigError)
    assert "another --port" in str(taken.exception)
    (tmp_path / "net.ebn").write_bytes(b"nothing")
    broken = CliRunner().invoke(app, ["serve", str(tmp_path / "net.ebn")])
    assert isinstance(broken.exception, FormatError)
