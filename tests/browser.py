"""A real browser for the pages; tests that need it say so and are left out where there is none."""

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    """For one module only: while it is open, playwright keeps an event loop running that other tests would meet."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


class Watched:
    """A page whose complaints are collected, with every address it asked for."""

    def __init__(self, page: "Page") -> None:
        self.page, self.complaints, self.requests = page, list[str](), list[str]()
        page.on("console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))

    @property
    def overflows(self) -> bool:
        return self.page.evaluate("document.documentElement.scrollWidth > innerWidth")

    @property
    def ground(self) -> str:
        return self.page.evaluate("getComputedStyle(document.body).backgroundColor")


def watch(browser: "Browser", width: int = 1000, scheme: str = "light") -> Watched:
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)  # type: ignore[arg-type]
    return Watched(page)


def draw_a_seven(page: "Page", pad: "Locator") -> None:
    box = pad.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 0.25 * box["width"], box["y"] + 0.22 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.75 * box["width"], box["y"] + 0.22 * box["height"], steps=8)
    page.mouse.move(box["x"] + 0.45 * box["width"], box["y"] + 0.82 * box["height"], steps=8)
    page.mouse.up()
