"""What `benchmarks/arm.py` counts: loops are found in the compiled program, predictions have the work they must."""

from pathlib import Path

import pytest

from ebnet.cost.profile import profile
from tests.builds import ARM64

pytestmark = pytest.mark.slow  # the core is compiled anew


def test_inner_loops_are_near_the_limit_without_loads() -> None:
    from loops import CORES, LIMITS, neon_loops, newest

    if newest("llvm-mca") is None:
        pytest.skip("llvm-mca is missing: apt-get install llvm")
    for loop in neon_loops(ARM64.program("logits")):
        assert loop.lookups == 24  # the sums of a tile stay in registers: no loop was split, none was unrolled
        assert 0.65 * LIMITS["NEON"] < loop.products / loop.instructions < LIMITS["NEON"]
        assert set(loop.cycles) == set(CORES)
        assert min(loop.cycles.values()) > loop.instructions / 8  # no core starts more than 8 in a cycle


def test_instructions_grow_with_the_work(tmp_path: Path) -> None:
    from arm import Symbols, prediction

    program = ARM64.program("logits")
    symbols = Symbols(program)
    for arch in ("1111-0.25-1:1:1:1", "1111-0.5-1:1:1:1"):
        found = prediction(program, symbols, arch, {"experts": 2}, tmp_path)
        assert found["bops"] == profile(arch).bops
        parts = found["instructions"]
        assert found["bops"] / 55 < parts["binary: lookups"] < found["bops"] / 10
        assert found["real_macs"] / 4 < parts["real layers"] < found["real_macs"]
        assert 0 < parts["everything else"] < 0.1 * sum(parts.values())
