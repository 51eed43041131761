"""The engine in a browser and in Node beside those who run ResNet-18 there, and beside itself natively.

    python benchmarks/web.py                          a table
    python benchmarks/web.py --rounds 40 --json       the numbers
    python benchmarks/web.py --packages DIR           the peers' npm packages are here already

1262-2-4:8:8:16 with 4 experts in WebAssembly; ResNet-18 in onnxruntime-web (fp32, and int8 by its own quantizer) and in
TensorFlow.js's WebAssembly backend; one image at 224x224, one thread each, 128-bit vectors for all. Everybody is asked
once in each round, Chromium, Node and the native engine in turn, all on the same core. Peers' logits are compared with
torch's first. A time is what the caller waits: the engine's holds the way to its worker and back, for the others run in
the caller's own thread. The peers' packages come from npm, into a folder that is kept.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import torch
from playwright.sync_api import Browser, Playwright, sync_playwright
from rich.console import Console
from rich.table import Table
from torch import Tensor

import ebnet
from cpu import cpu_name, pinned
from peers import CLOSE, NETWORK, ROUNDED, SIDE, tfjs
from peers.case import Case
from peers.networks import CHECK, calibration, make
from peers.onnxruntime import fp32_file, int8_file
from pictures import error, pictures

HERE = Path(__file__).parent
BUNDLE = Path(ebnet.__file__).parent / "web" / "static" / "ebnet.js"
PACKAGES = ("onnxruntime-web@1.30.0", "@tensorflow/tfjs-core@4.22.0", "@tensorflow/tfjs-backend-wasm@4.22.0")
KEPT = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "ebnet" / "web-peers"
WARM_UP = 8
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")


def write_networks(folder: Path) -> Tensor:
    """Everybody's files; returns torch's logits of the images for the peers' ResNet-18."""
    model = make("resnet18")
    case = Case(model, calibration(), 1, 1)
    ebnet.pack(make(NETWORK), folder / "net.ebn", reals="fp16")
    (folder / "fp32.onnx").write_bytes(fp32_file(case))
    (folder / "int8.onnx").write_bytes(int8_file(case))
    tfjs.write(model, folder)
    images = pictures(CHECK, SIDE, seed=2)
    (folder / "images.bin").write_bytes(np.ascontiguousarray(images.numpy(), np.float32).tobytes())
    with torch.inference_mode():
        return model(images)


class Node:
    def __init__(self, folder: Path, packages: Path) -> None:
        command = ["node", str(HERE / "web_node.mjs"), str(folder), str(packages), str(BUNDLE)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ready: dict[str, Any] = self._line()
        self.version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout.strip()

    def round(self) -> dict[str, float]:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self._line()

    def _line(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("Node ended early; its message is above")
        found: dict[str, Any] = json.loads(line)
        return found

    def close(self) -> None:
        self.process.kill()


def chromium(playwright: Playwright) -> Browser:
    path = next((found for name in CHROMIUM if (found := shutil.which(name))), None)
    if path is None:
        raise SystemExit("no Chromium on this machine: apt-get install chromium")
    return playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])


class Chromium:
    """A page that may use fine clocks: it is isolated from others."""

    def __init__(self, folder: Path, packages: Path) -> None:
        (folder / "ebnet.js").write_bytes(BUNDLE.read_bytes())
        (folder / "web_peers.mjs").write_bytes((HERE / "web_peers.mjs").read_bytes())
        (folder / "index.html").write_text("<!doctype html><title>web.py</title>")
        (folder / "packages").symlink_to(packages / "node_modules")
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Isolated, directory=str(folder)))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.playwright = sync_playwright().start()
        self.browser = chromium(self.playwright)
        self.version = f"Chromium {self.browser.version}"
        self.page = self.browser.new_page()
        self.page.goto(f"http://127.0.0.1:{self.server.server_port}/")
        self.ready: dict[str, Any] = self.page.evaluate(_PREPARE)

    def round(self) -> dict[str, float]:
        found: dict[str, float] = self.page.evaluate("() => window.peers.round(window.runs)")
        return found

    def close(self) -> None:
        self.browser.close()
        self.playwright.stop()
        self.server.shutdown()


class Isolated(SimpleHTTPRequestHandler):
    extensions_map = SimpleHTTPRequestHandler.extensions_map | {".mjs": "text/javascript", ".wasm": "application/wasm"}

    def end_headers(self) -> None:
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        super().end_headers()

    def log_message(self, *_: object) -> None:
        pass


_PREPARE = """async () => {
  const script = (src) => new Promise((onload, onerror) => {
    document.head.append(Object.assign(document.createElement("script"), { src, onload, onerror }));
  });
  const modules = {
    "ebnet": () => import("/ebnet.js"),
    "onnxruntime-web": () => import("/packages/onnxruntime-web/dist/ort.wasm.min.mjs"),
    "@tensorflow/tfjs-core": async () => {
      await script("/packages/@tensorflow/tfjs-core/dist/tf-core.min.js");
      return window.tf;
    },
    "@tensorflow/tfjs-backend-wasm": async () => {
      await script("/packages/@tensorflow/tfjs-backend-wasm/dist/tf-backend-wasm.min.js");
      return window.tf.wasm;
    },
  };
  window.peers = await import("/web_peers.mjs");
  const { runs, said, missing } = await window.peers.prepare({
    read: async (name) => new Uint8Array(await (await fetch(`/${name}`)).arrayBuffer()),
    module: (name) => modules[name](),
    wasmFolder: "/packages/onnxruntime-web/dist/",
    tfjsFolder: "/packages/@tensorflow/tfjs-backend-wasm/dist/",
  });
  window.runs = runs;
  return { said, missing };
}"""


def check(place: str, ready: dict[str, Any], logits: Tensor, own: Tensor) -> None:
    """Nobody is timed who computes something else."""
    for name, said in ready["said"].items():
        far = error(torch.tensor(said), own if name == "ebnet" else logits)
        limit = ROUNDED if "int8" in name else CLOSE
        if not far <= limit:
            raise SystemExit(f"{place}: the logits of {name} are {far:.2g} off, more than {limit}")


def install(packages: Path) -> None:
    if not (packages / "node_modules" / "onnxruntime-web").is_dir():
        packages.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "install", "--no-save", "--silent", "--prefix", str(packages), *PACKAGES], check=True)


def measure(rounds: int, packages: Path) -> dict[str, Any]:
    """Seconds of every call, by place and name."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        logits = write_networks(folder)
        engine = ebnet.load(folder / "net.ebn")
        images = np.frombuffer((folder / "images.bin").read_bytes(), np.float32).reshape(-1, 3, SIDE, SIDE)
        own, image = torch.from_numpy(engine(images)), images[:1]
        places = {"Chromium": Chromium(folder, packages), "Node": Node(folder, packages)}
        try:
            times: dict[str, dict[str, list[float]]] = {place: {} for place in (*places, "native")}
            for place, runner in places.items():
                check(place, runner.ready, logits, own)
            for turn in range(WARM_UP + rounds):
                for place, runner in places.items():
                    for peer, milliseconds in runner.round().items():
                        if turn >= WARM_UP:
                            times[place].setdefault(peer, []).append(milliseconds / 1e3)
                begin = time.perf_counter()
                engine(image)
                if turn >= WARM_UP:
                    times["native"].setdefault("ebnet", []).append(time.perf_counter() - begin)
            return {
                "cpu": cpu_name(),
                "isa": engine.isa,
                "versions": {place: runner.version for place, runner in places.items()},
                "missing": {place: runner.ready["missing"] for place, runner in places.items()},
                "seconds": times,
            }
        finally:
            for runner in places.values():
                runner.close()


def table(found: dict[str, Any]) -> Table:
    shown = Table(title=f"{NETWORK}, 4 experts, and ResNet-18: one image, one thread; {found['cpu']}")
    for column in ("", "", "median ms", "min ms", "x engine there", "x, min", "of native speed"):
        shown.add_column(column, justify="right" if column else "left", no_wrap=True)
    own = found["seconds"]["native"]["ebnet"]
    for place, peers in found["seconds"].items():
        base = peers["ebnet"]
        for peer, seconds in peers.items():
            middle, least = statistics.median(seconds), min(seconds)
            share = f"{min(own) / least:.0%}" if peer == "ebnet" else ""
            where = f"native, {found['isa']}" if place == "native" else found["versions"][place]
            shown.add_row(
                where,
                peer,
                f"{1e3 * middle:.1f}",
                f"{1e3 * least:.1f}",
                f"{middle / statistics.median(base):.1f}",
                f"{least / min(base):.1f}",
                share,
            )
        for peer, reason in found["missing"].get(place, {}).items():
            shown.add_row(found["versions"][place], peer, f"not available: {reason[:60]}")
    return shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--packages", type=Path, default=KEPT, help="where npm puts, or has put, the peers")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    install(arguments.packages)
    torch.set_num_threads(1)
    with pinned(1):
        found = measure(arguments.rounds, arguments.packages.resolve())
    if arguments.json:
        json.dump(found, sys.stdout)
    else:
        Console(width=130).print(table(found))


if __name__ == "__main__":
    main()
