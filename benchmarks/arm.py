"""The engine on 64-bit ARM, counted: there is no ARM machine here to time it on.

    python benchmarks/arm.py             tables
    python benchmarks/arm.py --json      the numbers

Counted: instructions of one prediction, by qemu-aarch64 (user mode, a plugin of ours, arm_count.c): those of three
predictions less those of one, halved, so that reading the file does not count. And products an instruction of the
inner loops (loops.py), read off the compiled program. Modelled: cycles of these loops by llvm-mca, with everything in
L1. Measured, but by others: the milliseconds that Larq Compute Engine and daBNN published. Nothing here is a time of
ours.

Needs Debian's g++-aarch64-linux-gnu, qemu-user, cmake and llvm (the newer the better: LLVM 14 models all three cores
as a Cortex-A57, LLVM 19 knows the Neoverse-N1). Loops of WebAssembly are shown after `python web/build.py`.
"""

import argparse
import json
import os
import re
import shutil
import sys
import tempfile
from bisect import bisect_right
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

import ebnet
from ebnet.cost.profile import profile
from loops import CORES, LIMITS, neon_loops, output_of, wasm_loops
from peers import EXPERTS, NETWORK, SIDE

ROOT = Path(__file__).resolve().parents[1]
TREE = ROOT / "build" / "arm64"
NETWORKS = {NETWORK: {"experts": EXPERTS}, "2222-1-1:1:1:1": {"experts": 1, "stem": "conv7x7", "shortcut": "none"}}
"""The paper's, and one with the layers of Bi-Real Net 18."""
PARTS = {
    "binary: lookups": r"::lookup_(columns|taps)<",
    "binary: the rest": r"ebnet::pair_lut::|ebnet::binarize|binarize_input",
    "real layers": r"ebnet::\(anonymous namespace\)::(conv|linear|run_conv|max_pool|average_pool|global_|widen|tile)",
    "everything else": r"",
}
PUBLISHED = [
    ("Larq Compute Engine", "QuickNetSmall, 59.4 %", "Cortex-A72 1.5 GHz (Raspberry Pi 4B)", 27.7),
    ("Larq Compute Engine", "QuickNet, 63.3 %", "Cortex-A72 1.5 GHz (Raspberry Pi 4B)", 45.0),
    ("Larq Compute Engine", "QuickNet, 63.3 %", "Pixel 1 (Snapdragon 821)", 25.5),
    ("Larq Compute Engine", "Bi-Real-18, 56.4 %", "Pixel 1 (Snapdragon 821)", 47.7),
    ("daBNN", "Bi-Real-18, 56.4 %", "Pixel 1 (Snapdragon 821)", 61.1),
]
"""One thread, as published: github.com/larq/compute-engine, README.md (2020 for Bi-Real-18, later for QuickNet);
github.com/JDAI-CV/dabnn, README.md (CPU time, May 2019); the share is top-1 on ImageNet."""


def build() -> Path:
    """The program that asks a network, for ARM."""
    toolchain = ROOT / "native" / "toolchains" / "aarch64-linux-gnu.cmake"
    options = (f"-DCMAKE_TOOLCHAIN_FILE={toolchain}", "-DCMAKE_BUILD_TYPE=Release", "-DEBNET_NATIVE_TESTS=ON")
    output_of("cmake", "-S", ROOT, "-B", TREE, *options)
    output_of("cmake", "--build", TREE, "--parallel", os.cpu_count() or 1, "--target", "logits")
    return TREE / "native" / "tests" / "logits"


class Symbols:
    """Which function an address lies in."""

    def __init__(self, program: Path) -> None:
        listed = output_of("aarch64-linux-gnu-nm", "-C", "-n", program).splitlines()
        found = [line.split(" ", 2) for line in listed if line[17:18] in "tTwW"]
        self.names = [name for _, _, name in found]
        self.addresses = [int(address, 16) for address, _, _ in found]

    def at(self, address: int) -> str:
        return self.names[max(0, bisect_right(self.addresses, address) - 1)]


def executed(program: Path, symbols: Symbols, network: Path, pixels: Path, times: int) -> Counter[str]:
    """Instructions of some predictions, by function."""
    with tempfile.TemporaryDirectory() as folder:
        plugin, counts = Path(folder) / "libcount.so", Path(folder) / "counts"
        output_of("gcc", "-O2", "-shared", "-fPIC", "-o", plugin, ROOT / "benchmarks" / "arm_count.c")
        output_of(
            *("qemu-aarch64", "-plugin", f"{plugin},out={counts}", program, network, pixels, SIDE, SIDE, times),
            env=os.environ | {"EBNET_KERNELS": "fixed"},
        )
        found: Counter[str] = Counter()
        for line in counts.read_text().splitlines():
            address, instructions = line.split()
            found[symbols.at(int(address, 16))] += int(instructions)
        return found


def prediction(program: Path, symbols: Symbols, arch: str, settings: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Instructions of one prediction, by part."""
    torch.manual_seed(0)
    model = ebnet.create_model(arch, **settings, precision="binary").eval()
    network, pixels = folder / "net.ebn", folder / "pixels"
    ebnet.pack(model, network, reals="fp16")
    pixels.write_bytes(np.random.default_rng(0).integers(0, 256, SIDE * SIDE * 3, dtype=np.uint8).tobytes())
    once, thrice = (executed(program, symbols, network, pixels, times) for times in (1, 3))
    parts = dict.fromkeys(PARTS, 0.0)
    for name, count in thrice.items():
        part = next(part for part, pattern in PARTS.items() if re.search(pattern, name))
        parts[part] += (count - once[name]) / 2
    costs = profile(model, SIDE)
    return {"arch": arch, **settings, "bops": costs.bops, "real_macs": costs.real_macs, "instructions": parts}


def tables(found: dict[str, Any]) -> list[Table]:
    whole = Table(title=f"Counted: millions of instructions of one prediction, {SIDE}x{SIDE}, one image")
    for heading in ("", *PARTS, "all", "products a lookup's instruction"):
        whole.add_column(heading, justify="right" if heading else "left")
    for one in found["predictions"]:
        parts = one["instructions"]
        name = f"{one['arch']}, {one['experts']} expert{'s' if one['experts'] > 1 else ''}"
        cells = [f"{value / 1e6:.1f}" for value in (*parts.values(), sum(parts.values()))]
        whole.add_row(name, *cells, f"{one['bops'] / parts['binary: lookups']:.1f}")
    inner = Table(title="Inner loops: counted, and products a cycle modelled by llvm-mca")
    for heading in ("kernel", "products", "instructions", "products an instruction", "limit without loads", *CORES):
        inner.add_column(heading, justify="right" if heading != "kernel" else "left")
    for loop in found["loops"]:
        speeds = (f"{loop['products'] / cycles:.0f} a cycle" for cycles in loop["cycles"].values())
        per = f"{loop['products'] / loop['instructions']:.1f}"
        limit = f"{LIMITS[loop['machine']]:.1f}"
        name = f"{loop['machine']}, {loop['kernel']}"
        inner.add_row(name, str(loop["products"]), str(loop["instructions"]), per, limit, *speeds)
    others = Table(title="Measured by others, as published: one thread, milliseconds")
    for heading in ("engine", "network, top-1", "machine", "ms"):
        others.add_column(heading, justify="right" if heading == "ms" else "left")
    for engine, network, machine, milliseconds in PUBLISHED:
        others.add_row(engine, network, machine, f"{milliseconds:.1f}")
    return [whole, inner, others]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    missing = [t for t in ("cmake", "aarch64-linux-gnu-g++", "qemu-aarch64", "llvm-mca") if shutil.which(t) is None]
    if missing:
        sys.exit(f"{', '.join(missing)} not found: apt-get install cmake g++-aarch64-linux-gnu qemu-user llvm")
    program = build()
    symbols = Symbols(program)
    with tempfile.TemporaryDirectory() as name:
        predictions = [prediction(program, symbols, arch, n, Path(name)) for arch, n in NETWORKS.items()]
    inner = [asdict(loop) | {"products": loop.products} for loop in (*neon_loops(program), *wasm_loops())]
    found = {"predictions": predictions, "loops": inner, "published": PUBLISHED}
    if arguments.json:
        json.dump(found, sys.stdout)
    else:
        for table in tables(found):
            Console(width=150).print(table)


if __name__ == "__main__":
    main()
