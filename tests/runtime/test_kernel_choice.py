"""Which kernel runs a layer: measured once and remembered, fixed on request, and never a matter of results."""

from pathlib import Path

import numpy as np
import pytest

import ebnet
from ebnet._native import kernels
from tests.packing.networks import random_network

IMAGES = np.random.default_rng(0).standard_normal((2, 3, 32, 32), dtype=np.float32)
SHAPE = [128, 128, 1, 1, 1, 1, 1, 0, 0, 1, 1, 8, 8]
"""A layer of the network below for which an instruction set may have several kernels."""


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ungrouped 1x1 convolutions of 32 to 256 channels, among others."""
    return ebnet.pack(random_network("1111-0.5-2:2:2:2", experts=2), tmp_path_factory.mktemp("choice") / "net.ebn")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in which choices are remembered, not there yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("EBNET_KERNELS", raising=False)
    return tmp_path / "cache" / "ebnet" / "kernels"


def several() -> list[str]:
    """Kernels of this CPU's best set that a choice is made among."""
    isa = kernels.requested_isa()
    names = [name for name, runs in kernels.names() if runs and name.startswith(isa) and kernels.supports(name, SHAPE)]
    if len(names) < 2:
        pytest.skip(f"{isa} has one kernel for a 1x1 convolution of 128 channels: nothing to choose")
    return names


def run(network: Path) -> tuple[np.ndarray, list[str]]:
    engine = ebnet.load(network)
    return engine(IMAGES), engine.kernels


def test_a_measured_choice_is_remembered(network: Path, cache: Path) -> None:
    names = several()
    logits, chosen = run(network)
    lines = [line.split("\t") for line in cache.read_text().splitlines()]
    assert {line[-1] for line in lines} <= set(chosen)
    assert [line[-1] for line in lines if line[3].split() == list(map(str, SHAPE))], "the layer is not in it"
    # Another kernel in the file is another kernel in the engine, without measuring, and the results are the same.
    for name in names:
        other = [[*line[:-1], name if line[3].split() == list(map(str, SHAPE)) else line[-1]] for line in lines]
        cache.write_text("".join("\t".join(line) + "\n" for line in other))
        written = cache.read_bytes()
        again, kernels_then = run(network)
        assert name in kernels_then
        np.testing.assert_array_equal(again, logits)
        assert cache.read_bytes() == written


def test_the_fixed_choice_measures_nothing(network: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EBNET_KERNELS", "fixed")
    _, chosen = run(network)
    assert kernels.select(SHAPE, kernels.requested_isa()) in chosen
    assert chosen == run(network)[1]
    assert not cache.exists()


def test_a_name_forces_a_kernel(network: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logits, _ = run(network)
    for name, runs in kernels.names():
        if not runs:
            continue
        monkeypatch.setenv("EBNET_KERNELS", name)
        forced, chosen = run(network)
        assert name in chosen
        np.testing.assert_array_equal(forced, logits)


def test_an_unknown_name_is_refused(network: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EBNET_KERNELS", "abacus")
    with pytest.raises(
        ebnet.errors.ConfigError, match=r"EBNET_KERNELS='abacus': expected measured, fixed or .*portable"
    ):
        ebnet.load(network)


def test_a_file_that_says_nothing_useful_is_no_obstacle(network: Path, cache: Path) -> None:
    logits, _ = run(network)
    random = np.random.default_rng(1)
    damages = [
        b"",
        b"\t" * 5000,
        random.bytes(20_000),
        b"x" * 100_000 + b"\n",
        cache.read_bytes()[:100] if cache.exists() else b"",
    ]
    cache.parent.mkdir(parents=True, exist_ok=True)
    good = cache.read_text() if cache.exists() else ""
    for damage in [*damages, good.replace("-1\n", "-none\n").replace("-4\n", "-none\n").encode()]:
        cache.write_bytes(damage)
        np.testing.assert_array_equal(run(network)[0], logits)
    cache.unlink()
    cache.mkdir()
    np.testing.assert_array_equal(run(network)[0], logits)
    assert not [path for path in cache.parent.iterdir() if path != cache], "something was left beside it"


def test_no_place_for_the_file_is_no_obstacle(network: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no directory")
    for place in (str(tmp_path / "file"), "/proc/nowhere"):
        monkeypatch.setenv("XDG_CACHE_HOME", place)
        run(network)
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("HOME", raising=False)
    run(network)
