"""Sizes that change on one engine: every kernel is right at each of them, whatever was run before."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

import ebnet
from ebnet._native import kernels
from tests.at_once import at_once
from tests.native import emulated
from tests.packing.networks import random_network

SIDES = [56, 24, 48, 8]
"""Between them the last stages' rows are of 1 to 8 outputs; AVX-512's carry-save kernel needs 7."""


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Layers of 64 to 512 ungrouped channels and grouped ones, every kernel's own shapes among them."""
    return ebnet.pack(random_network("1111-1-1:1:2:4", experts=2), tmp_path_factory.mktemp("sizes") / "net.ebn")


def images(side: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (2, side, side, 3), dtype=np.uint8)


@pytest.mark.parametrize(
    ("isa", "choice"),
    [("avx2", "fixed"), ("avx2", "measured"), ("avx512", "fixed"), ("avx512", "measured"), ("amx", "fixed")],
)
def test_a_size_does_not_depend_on_those_before(
    network: Path, isa: str, choice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not any(runs and name.startswith(isa) for name, runs in kernels.names()):
        pytest.skip(f"this CPU lacks {isa}")
    monkeypatch.setenv("EBNET_ISA", isa)
    monkeypatch.setenv("EBNET_KERNELS", "portable")
    expected = {side: ebnet.load(network).run(images(side)) for side in SIDES}
    monkeypatch.setenv("EBNET_KERNELS", choice)
    engine = ebnet.load(network)
    for side in [*SIDES, *reversed(SIDES)]:
        logits, experts = engine.run(images(side))
        np.testing.assert_array_equal(logits, expected[side].logits)
        np.testing.assert_array_equal(experts, expected[side].experts)


@pytest.mark.slow
def test_emulated_kernels_are_right_at_every_size(network: Path) -> None:
    """The kernels of AVX-512 and AMX inside the engine, on any x86 CPU with AVX2."""
    program = emulated.program("sizes_test")
    command = [str(program), str(network), *map(str, SIDES)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    for name, _ in kernels.names():
        assert f", {name}: 0 of {2 * len(SIDES)} sizes wrong" in result.stdout


def test_sizes_that_alternate_are_planned_once_each(
    network: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel that is measured is written to the cache: no plan, no writing."""
    cache = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.delenv("EBNET_KERNELS", raising=False)
    engine = ebnet.load(network)
    for side in (32, 16):
        engine(images(side))
    file = cache / "ebnet" / "kernels"
    if not file.exists():
        pytest.skip("one kernel for every layer: nothing was measured")
    file.unlink()
    for side in (32, 16, 32, 16):
        engine(images(side))
    assert not file.exists()


def test_threads_on_one_engine_get_their_own_answers(network: Path) -> None:
    expected = {side: ebnet.load(network).run(images(side)) for side in SIDES}
    engine = ebnet.load(network, threads=2)
    wrong: list[int] = []

    def caller(first: int) -> None:
        for turn in range(8):
            side = SIDES[(first + turn) % len(SIDES)]
            logits, experts = engine.run(images(side))
            if not ((logits == expected[side].logits).all() and (experts == expected[side].experts).all()):
                wrong.append(side)

    at_once(caller, 8)
    assert not wrong
    sessions = engine.session_bytes
    assert 1 <= len(sessions) <= 8
    alone = ebnet.load(network, threads=2)
    alone(images(max(SIDES)))
    assert max(sessions) == alone.session_bytes[0]
