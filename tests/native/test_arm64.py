"""The core for 64-bit ARM, cross-compiled, on an emulated CPU: it equals the reference there, and x86 here."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

import ebnet
from ebnet import zoo
from tests.builds import ARM64
from tests.full_size import assert_same, pack_full_size
from tests.runtime.tiny_file import TinyFile

pytestmark = pytest.mark.slow  # the core is compiled anew


def emulated(program: str, *arguments: object, cpu: str = "max") -> str:
    command = ["qemu-aarch64", "-cpu", cpu, str(ARM64.program(program)), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_binary_kernels_equal_the_reference_to_the_last_bit() -> None:
    said = emulated("kernels_test", 200)
    assert "200 cases, 0 failures" in said
    for blocks in (1, 2, 4):
        line = next(line for line in said.splitlines() if line.startswith(f"neon-pair-lut-{blocks}: "))
        assert int(line.split()[1]) > 10, line


@pytest.mark.parametrize(("program", "ran"), [("dense_test", "neon: ran"), ("train_test", "scalar: ran")])
def test_real_kernels_equal_plain_loops_up_to_rounding(program: str, ran: str) -> None:
    said = emulated(program, 60)
    assert "60 cases, 0 failures" in said
    assert ran in said


@pytest.mark.parametrize(("cpu", "dotprod"), [("max", "ran"), ("cortex-a72", "not run, this CPU lacks it")])
def test_int8_layers_equal_plain_loops_to_the_last_bit(cpu: str, dotprod: str) -> None:
    said = emulated("int8_test", 100, cpu=cpu).splitlines()
    assert said == ["scalar: ran", "neon: ran", f"dotprod: {dotprod}", "100 cases, 0 failures"]


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_the_engine_reads_and_refuses_and_runs(dtype: type, tmp_path: Path) -> None:
    file = tmp_path / "tiny.ebn"
    file.write_bytes(TinyFile(dtype).content())
    said = emulated("engine_test", file)
    assert said.endswith("0 failures\n")
    assert {"reference: ran", "portable: ran", "neon: ran"} <= set(said.splitlines())


def say(file: str | Path, pixels: np.ndarray, tmp_path: Path) -> tuple[np.ndarray, list[int]]:
    """Logits and experts of one image."""
    (tmp_path / "pixels").write_bytes(pixels.tobytes())
    isa, logits, experts = emulated("logits", file, tmp_path / "pixels", *pixels.shape[1:3]).splitlines()
    assert isa == "neon"
    return np.array([float.fromhex(value) for value in logits.split()]), [int(e) for e in experts.split()]


@pytest.mark.parametrize("name", sorted(zoo.cards()))
def test_networks_of_the_zoo_say_what_they_say_here(name: str, tmp_path: Path) -> None:
    engine = ebnet.load(f"zoo:{name}")
    side, channels = engine.preprocessing.size, engine.preprocessing.in_channels
    pixels = np.random.default_rng(3).integers(0, 256, (1, side, side, channels), dtype=np.uint8)
    assert_same(*say(engine.path, pixels, tmp_path), engine.run(pixels))


@pytest.mark.parametrize("reals", ["fp32", "int8"])
def test_the_papers_network_says_what_it_says_here(reals: Literal["fp32", "int8"], tmp_path: Path) -> None:
    pixels, expected = pack_full_size(tmp_path / "net.ebn", reals)
    assert_same(*say(tmp_path / "net.ebn", pixels, tmp_path), expected)


def test_the_c_example_is_one_static_file_for_any_arm64_linux(tmp_path: Path) -> None:
    program = ARM64.program("classify")
    content = program.read_bytes()
    assert content[:5] == b"\x7fELF\x02"
    assert int.from_bytes(content[18:20], "little") == 183  # EM_AARCH64
    first, size, count = (int.from_bytes(content[i : i + n], "little") for i, n in ((32, 8), (54, 2), (56, 2)))
    segments = {int.from_bytes(content[first + i * size :][:4], "little") for i in range(count)}
    assert 1 in segments  # PT_LOAD
    assert 3 not in segments  # PT_INTERP: no dynamic linker is asked for
    (tmp_path / "tiny.ebn").write_bytes(TinyFile().content())
    pixels = np.random.default_rng(0).integers(0, 256, (8, 10, 3), dtype=np.uint8)
    (tmp_path / "image.ppm").write_bytes(b"P6 10 8 255\n" + pixels.tobytes())
    lines = emulated("classify", tmp_path / "tiny.ebn", tmp_path / "image.ppm").splitlines()
    logits = ebnet.load(tmp_path / "tiny.ebn")(pixels[None])[0]
    assert [int(line.split()[0]) for line in lines] == list(np.argsort(-logits, kind="stable"))
