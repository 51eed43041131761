"""The documentation's site: builds strictly, fetches nothing from elsewhere, and its pages work in a browser."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser import draw_a_seven, watch
from tests.docs.commands import ROOT

LOADING = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "object": "data"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(target)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return target


class Loads(HTMLParser):
    """What a page makes a browser fetch; mere links are not followed."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag in LOADING and values.get("rel") not in ("canonical", "next", "prev"):
            self.found.append(values.get(LOADING[tag]) or "")


def test_fetches_nothing_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 8
    for page in pages:
        loads = Loads()
        loads.feed(page.read_text())
        assert [url for url in loads.found if re.match(r"(https?:)?//", url)] == [], page
    for sheet in site.rglob("*.css"):
        assert not re.search(r"@import|url\(\s*[\"']?https?:", sheet.read_text()), sheet


def test_every_document_is_in_the_navigation(site: Path) -> None:
    for document in (ROOT / "docs").rglob("*.md"):
        name = document.relative_to(ROOT / "docs")
        assert (site / name.parent / ("" if name.stem == "index" else name.stem) / "index.html").is_file()
        assert f" {name}\n" in (ROOT / "mkdocs.yml").read_text(), f"{name} is not in mkdocs.yml"


def test_reference_has_signatures_and_snippets_are_filled_in(site: Path) -> None:
    api = (site / "api" / "index.html").read_text()
    for name in ("ebnet.nn.expert_conv.ExpertBinaryConv2d", "ebnet.runtime.engine.load", "ebnet.errors.FormatError"):
        assert f'id="{name}"' in api
    assert "ebnet_load_memory" in re.sub(r"<[^>]+>", "", (site / "c-api" / "index.html").read_text())


@pytest.mark.parametrize("document", ["CONTRIBUTING.md", "SECURITY.md", "docs/concepts.md", "docs/decisions"])
def test_files_that_a_map_names_exist(document: str) -> None:
    pages = [ROOT / document] if document.endswith(".md") else sorted((ROOT / document).glob("*.md"))
    text = "".join(page.read_text() for page in pages)
    named = re.findall(r"`((?:src|native|examples|tests|benchmarks|docs)/[\w/.-]+)`", text)
    assert len(named) > 5
    assert [path for path in named if not (ROOT / path).exists() and "NAME" not in path and "FILE" not in path] == []


@pytest.mark.parametrize("width", [1000, 360])
def test_in_a_browser(site: Path, browser: Browser, width: int) -> None:
    seen = watch(browser, width=width)
    for page in ("concepts", "faq", "c-api"):
        seen.page.goto((site / page / "index.html").as_uri())
        assert not seen.overflows, page
    assert all(url.startswith(("file:", "data:")) for url in seen.requests)
    # From file:// a browser refuses the site's search worker; nothing else may be complained of.
    assert [text for text in seen.complaints if "search" not in text and "Worker" not in text] == []


@pytest.mark.parametrize("width", [1280, 400])
def test_the_first_page_recognises_a_drawn_seven(site: Path, browser: Browser, width: int) -> None:
    seen = watch(browser, width=width)
    seen.page.goto((site / "index.html").as_uri())
    frame = seen.page.frame_locator("iframe")
    expect(frame.locator("#network")).to_contain_text("4 experts per layer")
    frame.locator("#pad").scroll_into_view_if_needed()
    draw_a_seven(seen.page, frame.locator("#pad"))
    expect(frame.locator("#label")).to_have_text("7")
    assert not seen.overflows
    assert all(url.startswith(("file:", "data:", "blob:")) for url in seen.requests)


CUT = """() => [...document.querySelectorAll(".md-content .md-typeset__scrollwrap, .md-content pre > code")]
  .filter((box) => box.scrollWidth > box.clientWidth + 2).map((box) => box.textContent.trim().slice(0, 60))"""


def test_tables_and_commands_are_whole_at_1280_pixels(site: Path, browser: Browser) -> None:
    page = watch(browser, width=1280).page
    for document in sorted(site.rglob("index.html")):
        page.goto(document.as_uri())
        page.wait_for_function(
            "!document.querySelector('.md-content table') || document.querySelector('.md-typeset__scrollwrap')"
        )
        assert page.evaluate(CUT) == [], document.parent.name
