"""The kernels' own test program under AddressSanitizer and UndefinedBehaviorSanitizer."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "sanitized-kernels"  # kept, so that a second run compiles only what changed


def test_kernels_stay_inside_their_buffers() -> None:
    missing = [tool for tool in ("cmake", "g++") if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"building the sanitized test program needs {' and '.join(missing)}")
    options = ["-DEBNET_SANITIZE=ON", "-DEBNET_NATIVE_TESTS=ON", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS=-O1"]
    subprocess.run(["cmake", "-S", str(ROOT), "-B", str(BUILD), *options], check=True, stdout=subprocess.DEVNULL)
    build = ["cmake", "--build", str(BUILD), "--target", "kernels_test", "--parallel", "2"]
    subprocess.run(build, check=True, stdout=subprocess.DEVNULL)
    program = next(BUILD.rglob("kernels_test"))
    result = subprocess.run([str(program), "150"], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "portable: ran" in result.stdout
    assert "0 failures" in result.stdout
