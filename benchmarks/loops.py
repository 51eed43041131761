"""The inner loops of the binary kernels for 128-bit vectors, as compiled; native/bconv/pair_lut.h has the idea."""

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CORES = ("cortex-a72", "cortex-a76", "neoverse-n1")
PRODUCTS = 128
"""Of one lookup of 16 channels."""
LIMITS = {"NEON": 3 * PRODUCTS / 7, "WebAssembly": 3 * PRODUCTS / 8}
"""Products an instruction if nothing had to be loaded: three lookups, two additions for their sum and one for the
total, and the shift and addition of the upper field, which NEON does in one."""


def output_of(*command: object, **more: Any) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **more)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def newest(tool: str) -> str | None:
    """Of the versions of an LLVM tool that are installed."""
    return next((t for t in (*(f"{tool}-{version}" for version in range(29, 13, -1)), tool) if shutil.which(t)), None)


@dataclass(frozen=True)
class Loop:
    """An inner loop of lookups as it was compiled; cycles as llvm-mca models them, by core."""

    machine: str
    kernel: str
    lookups: int
    instructions: int
    cycles: dict[str, float]

    @property
    def products(self) -> int:
        return PRODUCTS * self.lookups


def neon_loops(program: Path) -> list[Loop]:
    """Of the tiles that run most: four pairs and two blocks of a 3x3 kernel, two pairs and four blocks of a 1x1."""
    listing = output_of("aarch64-linux-gnu-objdump", "-d", "-C", "--no-show-raw-insn", program)
    wanted = {"3x3": r"lookup_columns<4, 2, 1, 16>", "1x1": r"lookup_taps<2, 4>"}
    found = []
    for kernel, name in wanted.items():
        body = max(re.findall(rf"<[^\n]*{name}[^\n]*>:\n(.*?)\n\n", listing, re.DOTALL), key=len)
        inner = max(loop_bodies(body), key=lambda lines: sum("tbl" in line for line in lines) / len(lines))
        lookups = sum(line.startswith("tbl") for line in inner)
        found.append(Loop("NEON", kernel, lookups, len(inner), {core: cycles(inner, core) for core in CORES}))
    return found


def loop_bodies(body: str) -> list[list[str]]:
    """The straight runs of code that end with a jump to their own beginning."""
    lines = [re.match(r"\s*([0-9a-f]+):\s+(.*)", line) for line in body.splitlines()]
    code = [(int(line[1], 16), re.sub(r"\s+", " ", line[2]).strip()) for line in lines if line]
    place = {address: i for i, (address, _) in enumerate(code)}
    bodies = []
    for end, (address, text) in enumerate(code):
        jump = re.match(r"(?:b\.\w+|cbnz \w+,|cbz \w+,) ?([0-9a-f]+)", text)
        if jump and int(jump[1], 16) < address and int(jump[1], 16) in place:
            inside = [text for _, text in code[place[int(jump[1], 16)] : end + 1]]
            if sum(re.match(r"b\.|b |cbn?z|bl", text) is not None for text in inside) == 1:
                bodies.append(inside)
    return bodies


def cycles(lines: list[str], core: str) -> float:
    """Of one turn of a loop."""
    tool = newest("llvm-mca")
    assert tool is not None, "llvm-mca is missing: apt-get install llvm"
    text = "\n".join(re.sub(r"\s*(<|//).*", "", line) for line in lines)
    text = re.sub(r"^((?:b\.\w+|cbn?z \w+,) ?)[0-9a-f]+$", r"\1.", text, flags=re.MULTILINE)
    turns = 1000
    said = output_of(tool, "-mtriple=aarch64", f"-mcpu={core}", f"-iterations={turns}", input=text)
    total = re.search(r"Total Cycles:\s+(\d+)", said)
    assert total is not None
    return int(total[1]) / turns


def wasm_loops() -> list[Loop]:
    """Of the same kernels in WebAssembly, where `python web/build.py` has compiled them: two pairs and two blocks of a
    3x3 kernel, a pair and four blocks of a 1x1. Constants and moves between locals are no instructions of a CPU's."""
    tool = newest("llvm-objdump")
    compiled = list((ROOT / "build" / "web").rglob("bconv/simd128.cpp.o"))
    if tool is None or not compiled:
        return []
    listing = output_of(tool, "-d", "--no-show-raw-insn", compiled[0])
    found = []
    for kernel, name in {"3x3": "lookup_columnsILi2ELi2ELi1ELi16E", "1x1": "lookup_tapsILi1ELi4E"}.items():
        body = max(re.findall(rf"<[^\n]*{name}[^\n]*>:\n(.*?)\n\n", listing + "\n\n", re.DOTALL), key=len)
        words = re.findall(r"^\s*[0-9a-f]+:\s+([a-z][\w.]*)", body, re.MULTILINE)
        text = " ".join(word for word in words if not re.match(r"local\.|\w+\.const", word))
        inner = max(
            re.findall(r"loop ((?:(?!loop|block|end).)*?br_if) end", text), key=lambda run: run.count("swizzle")
        )
        found.append(Loop("WebAssembly", kernel, inner.count("swizzle"), len(inner.split()), {}))
    return found
