"""The core without Python, under AddressSanitizer and UBSan: its test program and the C example."""

import platform
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import ebnet
from tests.builds import SANITIZED, THREADS
from tests.runtime.tiny_file import TinyFile, TinyInt8File

pytestmark = pytest.mark.slow  # the sanitized core compiles for more than a minute


@pytest.fixture(scope="module")
def programs() -> dict[str, Path]:
    return {name: SANITIZED.program(name) for name in ("engine_test", "capi_test", "classify")}


@pytest.fixture(params=[TinyFile, TinyInt8File])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "tiny.ebn"
    path.write_bytes(request.param().content())
    return path


def run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("isa", ["", "avx2", "portable"])
def test_engine_is_clean_under_sanitizers(
    programs: dict[str, Path], file: Path, isa: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if isa == "avx2" and platform.machine() != "x86_64":
        pytest.skip(f"AVX2 is of x86-64, this is {platform.machine()}")
    monkeypatch.setenv("EBNET_ISA", isa)
    result = run(programs["engine_test"], file)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "0 failures" in result.stdout
    accepted = re.search(r"1500 damaged files: (\d+) accepted", result.stdout)
    assert accepted is not None
    assert int(accepted[1]) > 0


def test_the_c_api_is_clean_under_sanitizers(programs: dict[str, Path], file: Path) -> None:
    result = run(programs["capi_test"], file)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.endswith("0 failures\n")


def test_the_c_example_gives_pythons_answer(programs: dict[str, Path], file: Path, tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (8, 10, 3), dtype=np.uint8)
    picture = tmp_path / "picture.ppm"
    picture.write_bytes(b"P6 10 8 255\n" + pixels.tobytes())
    result = run(programs["classify"], file, picture)
    assert result.returncode == 0, result.stderr
    logits = ebnet.load(file)(pixels[None])[0]
    lines = [line.split() for line in result.stdout.splitlines()]
    assert [int(line[0]) for line in lines] == list(np.argsort(-logits, kind="stable"))
    assert [line[2] for line in lines] == [["zero", "one", "two", "three"][int(line[0])] for line in lines]
    assert sum(float(line[1]) for line in lines) == pytest.approx(1, abs=1e-3)


def test_the_c_example_reports_errors(programs: dict[str, Path], file: Path, tmp_path: Path) -> None:
    assert run(programs["classify"]).returncode == 2
    missing = run(programs["classify"], tmp_path / "nothing.ebn", "x.ppm")
    assert missing.returncode == 1
    assert missing.stderr.startswith("FileMissing: ")
    file.write_bytes(file.read_bytes()[:500])
    assert run(programs["classify"], file, "x.ppm").stderr.startswith("HeaderLengthInvalid: ")


def test_the_c_api_has_the_packages_version(programs: dict[str, Path]) -> None:
    assert run(programs["engine_test"]).stdout == f"ebnet {ebnet.__version__}\n"


@pytest.mark.slow
def test_many_threads_on_one_model_are_clean_under_thread_sanitizer(file: Path) -> None:
    result = run(THREADS.program("threads_test"), file, 20)
    assert result.returncode == 0, result.stdout + result.stderr[-5000:]
    found = re.search(r"(\d+) runs, 0 failures", result.stdout)
    assert found is not None
    assert int(found[1]) > 100
    assert "WARNING: ThreadSanitizer" not in result.stderr
