"""No code compiled for an instruction set reaches CPUs without it.

An object leaves its copies of inline functions as weak symbols, of which the linker keeps any one for the program: with
a copy made under `-mavx512f`, code for every CPU would call AVX-512. So the objects of instruction sets may define no
weak symbol at all. They are compiled without optimization here, where every inline function that could stay, does.
"""

from __future__ import annotations

import json
import platform
import re
import shlex
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.builds import KEPT, ROOT, alone, run

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or not (shutil.which("g++") and shutil.which("cmake") and shutil.which("nm")),
    reason="needs g++, cmake and nm on x86-64, whose instruction sets have flags",
)
FLAG = re.compile(r"-m(avx|amx|f16c|fma|sse|bmi|popcnt|arch)")


def weak_symbols(command: list[str], directory: str, to: Path) -> list[str]:
    """Of an object that the command of a build makes, without its optimization."""
    words = [word for word in command if not word.startswith("-O") and "ccache" not in word]
    words[words.index("-o") + 1] = str(to)
    done = subprocess.run([*words, "-O0"], cwd=directory, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    listed = subprocess.run(["nm", "-C", "--defined-only", to], capture_output=True, text=True, check=True).stdout
    return [line.split(maxsplit=2)[2] for line in listed.splitlines() if line.split()[1] in "WVwvu"]


def test_objects_of_instruction_sets_define_no_weak_symbol(tmp_path: Path) -> None:
    place = KEPT / "leaks"
    with alone(place.name):
        run(["cmake", "-S", str(ROOT), "-B", str(place), "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"])
        commands = json.loads((place / "compile_commands.json").read_text())
    flagged = {c["file"]: c for c in commands if any(FLAG.match(word) for word in shlex.split(c["command"]))}
    assert {Path(file).stem for file in flagged} >= {"amx", "avx2", "avx512", "avx512_carry_save"}

    def weak(index_and_file: tuple[int, str]) -> list[str]:
        index, file = index_and_file
        found = flagged[file]
        return weak_symbols(shlex.split(found["command"]), found["directory"], tmp_path / f"{index}.o")

    with ThreadPoolExecutor() as pool:
        leaks = dict(zip(flagged, pool.map(weak, enumerate(flagged)), strict=True))
    assert {file: symbols for file, symbols in leaks.items() if symbols} == {}


def test_a_leak_is_found(tmp_path: Path) -> None:
    source = tmp_path / "leak.cpp"
    source.write_text("inline int twice(int x) { return 2 * x; }\nint leaked(int x) { return twice(x); }\n")
    command = ["g++", "-mavx2", "-O3", "-c", str(source), "-o", "replaced"]
    assert weak_symbols(command, str(tmp_path), tmp_path / "leak.o") == ["twice(int)"]
