"""What do the inner loops of the AVX-512 kernels reach on a core that is not at hand? A simulation, no measurement.

Compiles the kernels as the package does, takes the innermost loops from the disassembly and has llvm-mca run each of
them on its model of a core. The model knows ports, latencies and the width of the front end; it assumes that everything
is in L1, and knows nothing of what happens between loops (a tile's beginning, its epilogue).

LLVM 14's table of Ice Lake is wrong in places: VPADDD, VPSUBD and VPTERNLOGD of 512 bits may use port 1, which is shut
while there are such operations, VPOPCNTD takes one cycle on port 0 (it is three on port 5), and loads of 512 bits take
an arithmetic operation. So other instructions stand for these, for which the table has what Intel's core does.

    python benchmarks/simulate.py
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

NATIVE = Path(__file__).resolve().parents[1] / "native"
FLAGS = "-std=c++17 -O3 -fPIC -ffp-contract=off -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vpopcntdq -w"
CEILINGS = {"avx512.cpp": 512 / 1.5, "avx512_carry_save.cpp": 1536 / 4}
CARRY = "vpternlogd $0xd4"  # the carry-save step: one popcount for two words
CORE = "icelake-server"
ITERATIONS = 200
VECTOR = r"(%zmm\d+)"

# What the table has wrong, and what stands for it: same operands, ports and latency.
STAND_INS = [
    (rf"^v(?:movdq[au]\d+|pbroadcastd)\s+(\S*\(.*\)),{VECTOR}$", r"vmovntdqa \1,\2"),
    (rf"^vpternlogd\s+\$\w+,(.*),{VECTOR},{VECTOR}$", r"vpandd \1,\2,\3"),
    (r"^vp(?:add|sub)d\b", "vpandd"),
    (rf"^vpopcntd\s+{VECTOR},{VECTOR}$", r"vpermd \1,\1,\2"),
]


def functions(source: str, directory: Path) -> Iterator[tuple[str, list[tuple[int, str]]]]:
    """Name and (address, instruction) of each function whose loops count bits."""
    path = directory / "kernel.o"
    subprocess.run(["g++", *FLAGS.split(), f"-I{NATIVE}", "-c", NATIVE / "bconv" / source, "-o", path], check=True)
    listing = subprocess.run(["objdump", "-dC", "--no-show-raw-insn", path], check=True, capture_output=True, text=True)
    for block in listing.stdout.split("\n\n"):
        found = re.match(r"[0-9a-f]+ <.*::(count_\w+<[^>]*>)\(", block)
        if found:
            lines = re.findall(r"^\s+([0-9a-f]+):\s+(.*)$", block, re.MULTILINE)
            yield found[1], [(int(address, 16), text.strip()) for address, text in lines]


def loops(code: list[tuple[int, str]]) -> Iterator[list[str]]:
    """The innermost loops that count bits."""
    index = {address: i for i, (address, _) in enumerate(code)}
    jumps = [(i, re.match(r"j\w+\s+([0-9a-f]+)", text)) for i, (_, text) in enumerate(code)]
    spans = [(index[int(to[1], 16)], i) for i, to in jumps if to and index.get(int(to[1], 16), i + 1) <= i]
    for begin, end in spans:
        inner = not any((begin, end) != (b, e) and begin <= b and e <= end for b, e in spans)
        body = [text for _, text in code[begin:end]]
        if inner and any("vpopcntd" in text for text in body):
            yield body


def cycles(body: list[str]) -> float:
    """Simulated cycles of one pass."""
    lines = []
    for line in body:
        for pattern, stand_in in STAND_INS:
            line = re.sub(pattern, stand_in, line)
        lines.append(line)
    command = ["llvm-mca", f"-mcpu={CORE}", f"-iterations={ITERATIONS}"]
    report = subprocess.run(command, check=True, capture_output=True, text=True, input="\n".join(lines)).stdout
    return int(re.findall(r"Total Cycles:\s+(\d+)", report)[0]) / ITERATIONS


def main() -> None:
    table = Table(title=f"simulated: llvm-mca, {CORE}")
    for column in ("loop of", "words", "spilled", "cycles", "MAC/cycle", "ceiling", "share"):
        table.add_column(column, justify="left" if column == "loop of" else "right")
    with tempfile.TemporaryDirectory() as directory:
        for source, ceiling in CEILINGS.items():
            for name, code in functions(source, Path(directory)):
                for body in loops(code):
                    words = sum("vpopcntd" in line or line.startswith(CARRY) for line in body)
                    spilled = sum("zmm" in line and "(%rsp)" in line for line in body)
                    time = cycles(body)
                    rate = 512 * words / time
                    numbers = (f"{time:.1f}", f"{rate:.0f}", f"{ceiling:.0f}", f"{rate / ceiling:.0%}")
                    table.add_row(name, str(words), str(spilled), *numbers)
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
