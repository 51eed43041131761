"""The kernels' own test programs under AddressSanitizer and UndefinedBehaviorSanitizer."""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "sanitized-kernels"  # kept, so that a second run compiles only what changed


@pytest.fixture(scope="module")
def configured() -> Path:
    missing = [tool for tool in ("cmake", "g++") if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"building the sanitized test programs needs {' and '.join(missing)}")
    options = ["-DEBNET_SANITIZE=ON", "-DEBNET_NATIVE_TESTS=ON", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS=-O1"]
    subprocess.run(["cmake", "-S", str(ROOT), "-B", str(BUILD), *options], check=True, stdout=subprocess.DEVNULL)
    return BUILD


@pytest.mark.parametrize(
    ("program", "ran"),
    [
        ("kernels_test", "shapes equal the reference"),
        ("dense_test", "avx512 (split): ran"),
        ("train_test", "avx512 (split): ran"),
    ],
)
def test_kernels_stay_inside_their_buffers(configured: Path, program: str, ran: str) -> None:
    if "avx512" in ran and platform.machine() != "x86_64":
        pytest.skip(f"the vector levels of {program} are for x86-64, this is {platform.machine()}")
    build = ["cmake", "--build", str(configured), "--target", program, "--parallel", "2"]
    subprocess.run(build, check=True, stdout=subprocess.DEVNULL)
    binary = next(path for path in configured.rglob(program) if path.is_file())
    result = subprocess.run([str(binary), "150"], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert ran in result.stdout
    assert "150 cases, 0 failures" in result.stdout
