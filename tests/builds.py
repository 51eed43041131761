"""Trees of the native core that tests build: each once for all test files, pytest's workers and later runs."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "build" / "tests"
SOURCES = ("CMakeLists.txt", "src/ebnet/__init__.py", "native", "examples/c")


@dataclass(frozen=True)
class Tree:
    """A configuration of the core, e.g. with sanitizers."""

    name: str
    options: tuple[str, ...]
    tools: tuple[str, ...] = ("cmake", "gcc", "g++")

    def program(self, target: str) -> Path:
        """The built program, made now if the sources have changed since; skips the test where a tool is missing."""
        missing = [tool for tool in self.tools if shutil.which(tool) is None]
        if missing:
            pytest.skip(f"building the core alone needs {' and '.join(missing)}")
        settings = repr((self.options, quick().get("CMAKE_GENERATOR")))
        place = KEPT / f"{self.name}-{hashlib.sha256(settings.encode()).hexdigest()[:8]}"
        stamp = place / f"{target}.built-from"
        with alone(place.name):
            # A kept tree compiles only what changed; one of the same content is not even asked.
            contents = contents_of_sources()
            if not stamp.is_file() or stamp.read_text() != contents:
                run(["cmake", "-S", str(ROOT), "-B", str(place), *self.options])
                run(["cmake", "--build", str(place), "--target", target])
                stamp.write_text(contents)
        return next(path for path in place.rglob(target) if path.is_file())


TESTED = ("-DEBNET_NATIVE_TESTS=ON", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS=-O1")
SANITIZED = Tree("sanitized", ("-DEBNET_SANITIZE=ON", "-DEBNET_EXAMPLES=ON", *TESTED))
"""The core's own test programs and the C example under AddressSanitizer and UndefinedBehaviorSanitizer."""
EMULATED = Tree("emulated", ("-DEBNET_EMULATE=ON", *TESTED))
"""The core's own test programs with emulated kernels, for CPUs without their instructions."""
ARM64 = Tree(
    "arm64",
    (
        f"-DCMAKE_TOOLCHAIN_FILE={ROOT / 'native' / 'toolchains' / 'aarch64-linux-gnu.cmake'}",
        *(f"-D{option}=ON" for option in ("EBNET_NATIVE_TESTS", "EBNET_EXAMPLES")),
        "-DCMAKE_BUILD_TYPE=Release",
    ),
    ("cmake", "aarch64-linux-gnu-gcc", "aarch64-linux-gnu-g++", "qemu-aarch64"),
)
"""The test programs and the C example for 64-bit ARM, static; `qemu-aarch64 PROGRAM` runs it."""
THREADS = Tree("threads", ("-DEBNET_SANITIZE_THREADS=ON", *TESTED))
"""The core's own test programs under ThreadSanitizer."""


@contextmanager
def alone(name: str) -> Iterator[None]:
    """Nobody else of this checkout is inside at the same time, of whatever process; a killed one leaves no lock."""
    KEPT.mkdir(parents=True, exist_ok=True)
    with (KEPT / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def contents_of_sources() -> str:
    digest = hashlib.sha256()
    for source in SOURCES:
        for path in sorted(p for p in [ROOT / source, *(ROOT / source).rglob("*")] if p.is_file()):
            content = path.read_bytes()
            digest.update(f"{path.relative_to(ROOT)} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def quick() -> dict[str, str]:
    """Variables that make cmake quick: all cores, and Ninja and ccache where they are."""
    variables = {"CMAKE_BUILD_PARALLEL_LEVEL": str(os.cpu_count() or 1)}
    if shutil.which("ninja"):
        variables["CMAKE_GENERATOR"] = "Ninja"
    if shutil.which("ccache"):
        variables |= {"CMAKE_C_COMPILER_LAUNCHER": "ccache", "CMAKE_CXX_COMPILER_LAUNCHER": "ccache"}
        # Not in the cache of the tests, which is thrown away.
        variables["CCACHE_DIR"] = os.environ.get("CCACHE_DIR", str(KEPT / "ccache"))
    return variables


def run(command: list[str]) -> None:
    done = subprocess.run(command, env=os.environ | quick(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
