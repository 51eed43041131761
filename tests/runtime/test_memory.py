"""How much memory a fresh process takes for its first prediction, by the benchmark that the documentation quotes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

STARTUP = Path(__file__).resolve().parents[2] / "benchmarks" / "startup.py"


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from Linux's /proc")
@pytest.mark.parametrize("isa", ["avx2", "the CPU's best"])
@pytest.mark.parametrize("cache", ["kept", "nowhere"])
def test_the_first_prediction_takes_little_beside_numpy(cache: str, isa: str, tmp_path: Path) -> None:
    """1262-2-4:8:8:16 with 4 experts, batch 1, 224x224: 9.5 MB beside numpy, of which the process wrote 7.8.

    numpy's own 16 MB are left out: how much of its libraries is mapped depends on how they lie in the system's cache.
    Whether the choice of kernels is remembered, or their trials and proofs come first in every process.
    """
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path) if cache == "kept" else "/proc/nowhere"}
    if isa == "avx2":
        if "avx2" not in Path("/proc/cpuinfo").read_text():
            pytest.skip("this CPU has no AVX2")
        environment["EBNET_ISA"] = "avx2"
    command = [sys.executable, str(STARTUP), "--rounds", "3", "--json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    megabytes = json.loads(done.stdout)["megabytes"]
    assert megabytes["peak above interpreter and numpy"] < 9.5, megabytes
    assert megabytes["of it private"] < 7.8, megabytes
