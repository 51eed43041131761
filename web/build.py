"""The npm package and the page's script: the core compiled to WebAssembly, one file with the JavaScript around it.

    python web/build.py            compiles (emscripten; Debian's 3.1.6 will do), writes src/ebnet/web/static/ebnet.js
    python web/build.py --check    writes nothing and fails where that file is not what the sources make
    python web/build.py --package DIR    the npm package, from the file that is there

One file holds everything, the WebAssembly as base64 and the worker as text: it needs no bundler, no particular web host
and no second request, and a page may carry it inside itself.
"""

import argparse
import base64
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "web" / "src"
BUNDLE = ROOT / "src" / "ebnet" / "web" / "static" / "ebnet.js"
EMSCRIPTEN = Path("/usr/share/emscripten")
NODE_MODULES = "/usr/share/nodejs"
"""Where Debian keeps what its emscripten needs of Node."""


def compile_core(tree: Path) -> bytes:
    """The core as WebAssembly, compiled in a tree that is kept."""
    toolchain = EMSCRIPTEN / "cmake" / "Modules" / "Platform" / "Emscripten.cmake"
    # Not through a compiler cache, which the environment may ask for: none knows emscripten.
    options = ["-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_C_COMPILER_LAUNCHER=", "-DCMAKE_CXX_COMPILER_LAUNCHER="]
    environment = os.environ | {"NODE_PATH": NODE_MODULES}
    for command in (
        ["cmake", "-S", str(ROOT), "-B", str(tree), f"-DCMAKE_TOOLCHAIN_FILE={toolchain}", *options],
        ["cmake", "--build", str(tree), "--parallel", str(os.cpu_count() or 1), "--target", "ebnet"],
    ):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return (tree / "native" / "web" / "ebnet.wasm").read_bytes()


def plain(*names: str) -> str:
    """Modules one after the other as a single script: what they import of each other is simply there."""
    text = "\n".join((SOURCES / name).read_text() for name in names)
    text = re.sub(r"^import .* from \"\./.*\n", "", text, flags=re.MULTILINE)
    return re.sub(r"^export (?=class|const|function)", "", text, flags=re.MULTILINE)


def bundle(wasm: bytes) -> str:
    """The one file: constants for the WebAssembly and the worker's text, then the page's side as a module."""
    worker = f'"use strict";\n{plain("errors.js", "pixels.js", "core.js", "worker.js")}'
    return "\n".join(
        [
            "// ebnet: packed networks in browsers and Node. Made by web/build.py from web/src and native/.",
            f'const WASM = "{base64.b64encode(wasm).decode()}";',
            f"const WORKER = {json.dumps(worker)};",
            re.sub(r"^export \{.*\n", "", plain("errors.js", "engine.js", "index.js"), flags=re.MULTILINE).rstrip(),
            "export { EbnetError, load };",
            "",
        ]
    )


def version() -> str:
    """The Python package's."""
    found = re.search(r'^__version__ = "(.+)"$', (ROOT / "src" / "ebnet" / "__init__.py").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def package(to: Path) -> None:
    """The npm package: the built file, its types, and what npm wants to know."""
    to.mkdir(parents=True, exist_ok=True)
    shutil.copy(BUNDLE, to / "ebnet.js")
    shutil.copy(SOURCES / "index.d.ts", to / "ebnet.d.ts")
    shutil.copy(ROOT / "web" / "README.md", to / "README.md")
    shutil.copy(ROOT / "LICENSE", to / "LICENSE")
    facts = json.loads((ROOT / "web" / "package.json").read_text())
    (to / "package.json").write_text(json.dumps(facts | {"version": version()}, indent=2) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with the file that is there, write nothing")
    parser.add_argument("--package", type=Path, metavar="DIR", help="write the npm package to this folder")
    parser.add_argument("--tree", type=Path, default=ROOT / "build" / "web", help="where cmake works")
    arguments = parser.parse_args()
    if arguments.package is not None:
        return package(arguments.package)
    made = bundle(compile_core(arguments.tree))
    if not arguments.check:
        BUNDLE.parent.mkdir(parents=True, exist_ok=True)
        BUNDLE.write_text(made)
    elif BUNDLE.read_text() != made:
        sys.exit(f"{BUNDLE.relative_to(ROOT)} is not what the sources make: run `python web/build.py` and commit it")
    print(f"{BUNDLE.relative_to(ROOT)}: {len(made) / 1000:.0f} kB")


if __name__ == "__main__":
    main()
