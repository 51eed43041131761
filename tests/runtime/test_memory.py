"""How much memory a fresh process takes for its first prediction, by the benchmark that the documentation quotes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

STARTUP = Path(__file__).resolve().parents[2] / "benchmarks" / "startup.py"


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from Linux's /proc")
def test_the_first_prediction_fits_into_25_megabytes() -> None:
    """1262-2-4:8:8:16 with 4 experts, batch 1, 224x224: 25 MB with numpy, 10 without."""
    command = [sys.executable, str(STARTUP), "--rounds", "3", "--json"]
    megabytes = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["megabytes"]
    assert megabytes["peak above the bare interpreter"] < 25, megabytes
    assert megabytes["peak above interpreter and numpy"] < 10, megabytes
