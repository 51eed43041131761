"""The page of `ebnet export-web`, from the first request to its first answer.

    python benchmarks/web_page.py                         the digits, ten times
    python benchmarks/web_page.py zoo:imagenette-e4 --loads 20 --json

Every load has a browser profile of its own: nothing is kept from the one before. The time begins with the navigation
and ends with the first answer in the page's hands: files fetched from this machine, WebAssembly compiled, the network
verified, one image cropped, resized and classified.
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


def first_answer(browser: Browser, address: str) -> float:
    """Milliseconds."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(address, wait_until="commit")
    milliseconds: float = page.evaluate(FIRST_ANSWER)
    context.close()
    return milliseconds


def measure(source: str, loads: int) -> list[float]:
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        export(source, Path(name))
        server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Isolated, directory=name))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser = chromium(playwright)
        first_answer(browser, f"http://127.0.0.1:{server.server_port}/")  # the browser's own start
        found = [first_answer(browser, f"http://127.0.0.1:{server.server_port}/") for _ in range(loads)]
        browser.close()
        server.shutdown()
        return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", nargs="?", default="zoo:digits-e4", help="a packed file or zoo:NAME")
    parser.add_argument("--loads", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    found = measure(arguments.source, arguments.loads)
    if arguments.json:
        print(json.dumps({"cpu": cpu_name(), "source": arguments.source, "milliseconds": found}))
    else:
        print(f"{arguments.source}: first answer after {statistics.median(found):.0f} ms (median of {len(found)}),")
        print(f"at best {min(found):.0f} ms; {cpu_name()}")


if __name__ == "__main__":
    main()
