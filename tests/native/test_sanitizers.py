"""The kernels' own test programs under AddressSanitizer and UndefinedBehaviorSanitizer."""

import platform
import subprocess

import pytest

from tests.builds import SANITIZED

pytestmark = pytest.mark.slow  # the sanitized core compiles for more than a minute


@pytest.mark.parametrize(
    ("program", "ran"),
    [
        ("kernels_test", "shapes equal the reference"),
        ("dense_test", "avx512 (split): ran"),
        ("int8_test", "scalar: ran"),
        ("step_test", "avx512 (split): ran"),
        ("train_test", "avx512 (split): ran"),
    ],
)
def test_kernels_stay_inside_their_buffers(program: str, ran: str) -> None:
    if "avx512" in ran and platform.machine() != "x86_64":
        pytest.skip(f"the vector levels of {program} are for x86-64, this is {platform.machine()}")
    result = subprocess.run([SANITIZED.program(program), "150"], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert ran in result.stdout
    assert "150 cases, 0 failures" in result.stdout
