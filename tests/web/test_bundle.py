"""The script in the package is what the sources make: compiled anew and compared."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builds import ROOT, alone


@pytest.mark.slow
def test_the_bundle_is_built_from_these_sources() -> None:
    missing = [tool for tool in ("emcc", "cmake", "node") if shutil.which(tool) is None]
    if missing or not Path("/usr/share/emscripten").is_dir():
        pytest.skip(f"needs Debian's emscripten and cmake; missing: {', '.join(missing) or '/usr/share/emscripten'}")
    tree = ROOT / "build" / "tests" / "web"
    with alone("web"):
        command = [sys.executable, str(ROOT / "web" / "build.py"), "--check", "--tree", str(tree)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
