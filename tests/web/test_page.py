"""`ebnet export-web`: the folder on a plain web host, in a real browser; it says what the native engine says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, expect

import ebnet
from ebnet import zoo
from ebnet.errors import ConfigError, FormatError
from ebnet.web.site import FILES, NETWORK, export
from tests.browser import draw_a_seven, watch


def test_a_drawn_seven_is_one(host: tuple[Path, str], browser: Browser) -> None:
    folder, address = host
    export("zoo:digits-e4", folder)
    for width in (1280, 400):
        seen = watch(browser, width)
        page = seen.page
        page.goto(address)
        expect(page.locator("#network")).to_contain_text("4 experts per layer")
        expect(page.locator("#local")).to_contain_text("your images go nowhere")
        draw_a_seven(page, page.locator("#pad"))
        expect(page.locator("#label")).to_have_text("7")
        expect(page.locator("#probabilities .bar")).to_have_count(10)
        expect(page.locator("#path .chosen")).to_have_count(8)
        assert not seen.overflows
        assert seen.complaints == []
        assert {url.removeprefix(address) for url in seen.requests if url.startswith("http")} <= {"", NETWORK, *FILES}
        page.close()


def test_it_opens_without_a_network_once_seen(host: tuple[Path, str], browser: Browser) -> None:
    folder, address = host
    export("zoo:digits-e4", folder)
    context = browser.new_context()
    page = context.new_page()
    page.goto(address)
    page.wait_for_function("navigator.serviceWorker.controller !== null")
    context.set_offline(True)
    draw_a_seven(page, page.locator("#pad"))
    expect(page.locator("#label")).to_have_text("7")
    page.reload()
    expect(page.locator("#network")).to_contain_text("4 experts per layer")
    draw_a_seven(page, page.locator("#pad"))
    expect(page.locator("#label")).to_have_text("7")
    context.close()


@pytest.mark.parametrize("name", sorted(zoo.cards()))
def test_images_say_what_they_say_natively(name: str, host: tuple[Path, str], browser: Browser) -> None:
    folder, address = host
    export(f"zoo:{name}", folder)
    engine = ebnet.load(f"zoo:{name}")
    random = np.random.default_rng(5)
    coarse = random.integers(0, 256, (12, 15, 3), dtype=np.uint8)
    image = Image.fromarray(np.kron(coarse, np.ones((10, 10, 1), np.uint8)))
    image.save(folder / "image.png")
    page = watch(browser).page
    page.goto(address)
    said = page.evaluate(
        """async () => {
          const { load } = await import("./ebnet.js");
          const net = await load("net.ebn");
          const file = await (await fetch("image.png")).blob();
          const bitmap = await createImageBitmap(file);
          const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
          const context = canvas.getContext("2d");
          context.drawImage(bitmap, 0, 0);
          const shown = Object.assign(new Image(), { src: "image.png" });
          await shown.decode();
          const kinds = { file, bitmap, canvas, shown, data: context.getImageData(0, 0, bitmap.width, bitmap.height) };
          const answers = {};
          for (const [kind, image] of Object.entries(kinds)) {
            const answer = await net.predict(image);
            answers[kind] = { logits: Array.from(answer.logits), experts: answer.experts.map((e) => e.chosen) };
          }
          return answers;
        }"""
    )
    expected = engine.run(engine.preprocessing.fit(image)[None])
    assert set(said) == {"file", "bitmap", "canvas", "shown", "data"}
    for answer in said.values():
        limit = 1e-5 * np.abs(expected.logits).max()
        np.testing.assert_allclose(answer["logits"], expected.logits[0], rtol=1e-5, atol=limit)
        assert answer["experts"] == expected.experts[:, 0].tolist()


def test_the_page_stays_alive_while_the_network_runs(host: tuple[Path, str], browser: Browser) -> None:
    folder, address = host
    export("zoo:imagenette-e4", folder)
    page = watch(browser).page
    page.goto(address)
    beats = page.evaluate(
        """async () => {
          const { load } = await import("./ebnet.js");
          const net = await load("net.ebn");
          const { size, in_channels: channels } = net.preprocessing;
          let beats = 0;
          const clock = setInterval(() => { beats += 1; }, 5);
          for (let batch = 64; ; batch *= 2) {
            beats = 0;
            const { milliseconds } = await net.run(new Uint8Array(batch * size * size * channels), { batch });
            if (milliseconds > 200) return beats; // of one run, in which a page without a worker would hang
          }
        }"""
    )
    assert beats > 10


def test_a_damaged_network_is_told_on_the_page(host: tuple[Path, str], browser: Browser) -> None:
    folder, address = host
    export("zoo:digits-e4", folder)
    (folder / NETWORK).write_bytes((folder / NETWORK).read_bytes()[:-100])
    page = watch(browser).page
    page.goto(address)
    expect(page.locator("#error")).to_be_visible()
    expect(page.locator("#error")).to_contain_text("bytes")


def test_export_refuses_what_is_no_network_and_other_folders(tmp_path: Path) -> None:
    (tmp_path / "bad.ebn").write_bytes(b"no network")
    with pytest.raises(FormatError):
        export(tmp_path / "bad.ebn", tmp_path / "site")
    assert not (tmp_path / "site").exists()
    with pytest.raises(ConfigError, match="holds other files"):
        export("zoo:digits-e4", tmp_path)
    written = export("zoo:digits-e4", tmp_path / "site")
    assert sorted(path.name for path in written) == sorted([NETWORK, *FILES])
    assert export("zoo:fashion-mnist-e4", tmp_path / "site") == written  # its own folder is written anew


def test_a_report_with_a_live_panel_needs_nothing_beside_it(tmp_path: Path, browser: Browser) -> None:
    from ebnet.report.page import Report, Section
    from ebnet.web.live import live_panel

    path = tmp_path / "report.html"
    Report("A run", "of digits", [], [Section("Training")], panel=live_panel("zoo:digits-e4")).write(path)
    seen = watch(browser)
    seen.page.goto(path.as_uri())
    frame = seen.page.frame_locator("iframe")
    expect(frame.locator("#network")).to_contain_text("4 experts per layer")
    image = Image.fromarray(np.zeros((28, 28), np.uint8))
    image.save(tmp_path / "image.png")
    frame.locator("#file").set_input_files(tmp_path / "image.png")
    expect(frame.locator("#label")).not_to_be_empty()
    expect(seen.page.locator("nav")).to_contain_text("Try it")
    assert seen.complaints == []
    assert all(url.startswith(("file:", "blob:", "data:", "about:")) for url in seen.requests)
