"""The page of `ebnet export-web`, from the first request to its first answer.

    python benchmarks/web_page.py                         the digits, ten times
    python benchmarks/web_page.py zoo:imagenette-e4 --loads 20 --json

Every load has a browser profile of its own: nothing is kept from the one before. The time begins with the navigation
and ends with the first answer in the page's hands: files fetched from this machine, WebAssembly compiled, the network
verified, one image cropped, resized and classified. A page that only imports an empty module takes turns with it: that
is what the browser itself needs on this machine at this moment.
"""

import argparse
import json
import statistics
import tempfile
import threading
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from cpu import cpu_name
from ebnet.web.site import export
from web import Isolated, chromium

FIRST_ANSWER = """async () => {
  const { classify } = await import("./answers.js");
  const canvas = Object.assign(document.createElement("canvas"), { width: 112, height: 112 });
  await classify(canvas, false);
  return performance.now();
}"""

EMPTY_PAGE = '<!doctype html><script type="module" src="empty.js"></script>'
EMPTY_MODULE = "export {};"
NOTHING = """async () => {
  await import("./empty.js");
  return performance.now();
}"""


def milliseconds(browser: Browser, address: str, until: str) -> float:
    context = browser.new_context()
    page = context.new_page()
    page.goto(address, wait_until="commit")
    passed: float = page.evaluate(until)
    context.close()
    return passed


def measure(source: str, loads: int) -> tuple[list[float], list[float]]:
    """Milliseconds to the first answer, and those of the empty page between."""
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        export(source, folder)
        (folder / "empty.html").write_text(EMPTY_PAGE)
        (folder / "empty.js").write_text(EMPTY_MODULE)
        server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Isolated, directory=name))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/"
        browser = chromium(playwright)
        answers, nothing = [], []
        for _ in range(loads + 1):
            answers.append(milliseconds(browser, address, FIRST_ANSWER))
            nothing.append(milliseconds(browser, address + "empty.html", NOTHING))
        browser.close()
        server.shutdown()
        return answers[1:], nothing[1:]  # without the browser's own start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", nargs="?", default="zoo:digits-e4", help="a packed file or zoo:NAME")
    parser.add_argument("--loads", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    answers, nothing = measure(arguments.source, arguments.loads)
    if arguments.json:
        numbers = {"milliseconds": answers, "milliseconds of an empty page": nothing}
        print(json.dumps({"cpu": cpu_name(), "source": arguments.source} | numbers))
        return
    median, empty = statistics.median(answers), statistics.median(nothing)
    print(f"{arguments.source}: first answer after {median:.0f} ms, at best {min(answers):.0f} (of {len(answers)}),")
    print(f"{median / empty:.1f} times an empty page's {empty:.0f} ms; {cpu_name()}")


if __name__ == "__main__":
    main()
