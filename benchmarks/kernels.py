"""How close do the binary convolution kernels come to what this core can do?

Times every kernel this CPU runs on every layer shape of 1262-2-4:8:8:16 and on a yardstick, interleaved, and prints
products (MACs) per core cycle beside the kernel's ceiling. `dots` is the convolution alone, its tiles left in L1;
`fused` adds the whole epilogue (scale, PReLU, skip, fp32 stream updated in place, next sign, packing, channel sums).

    chrt -f 10 taskset -c 0 python benchmarks/kernels.py
    python benchmarks/kernels.py --rounds 5 --json
    python benchmarks/kernels.py --narrow          groups and widths that fill no vector, beside such as do
"""

from __future__ import annotations

import argparse
import json
import statistics
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.table import Table

from cpu import cpu_name
from ebnet._native import kernels

# Stage by stage: in, out, groups, size of input and output.
STAGES = [(64, 128, 4, 56, 56), (128, 256, 8, 56, 28), (256, 512, 8, 28, 14), (512, 1024, 16, 14, 7)]
# in, out, groups, kernel, stride, input size: the first layer of the stage, one of the others, the mixing of groups.
LAYERS = [
    layer
    for inputs, outputs, groups, before, after in STAGES
    for layer in (
        (inputs, outputs, groups, 3, before // after, before),
        (outputs, outputs, groups, 3, 1, after),
        (outputs, outputs, 1, 1, 1, after),
    )
]
# Of no layer of the network: the 3x3 kernel with 256 channels that others measure theirs with.
YARDSTICKS = [(256, 256, 1, 3, 1, 14)]

# As wide as a vector, then narrower: in groups of 8 and 4, and of widths that are a multiple of nothing.
NARROW = [
    (64, 64, 4, 3, 1, 32),
    (64, 64, 8, 3, 1, 32),
    (64, 64, 16, 3, 1, 32),
    *((width, width, 1, 3, 1, 32) for width in (16, 11, 15, 17, 22, 44)),
]

PAIR_LUT = (
    768 / (8 / 4),
    "3 lookups of 2 pixels x 4 inputs x 32 outputs take 8 vector operations, 4 a cycle as on Zen 3",
)

# Products a cycle of the kernel's inner loop when nothing but its vector or popcount operations costs anything.
CEILINGS = {
    "portable": (64 / 4, "64 products by 16 scalar operations (no POPCNT is assumed), 4 a cycle"),
    "avx2-pair-lut-1": PAIR_LUT,
    "avx2-pair-lut-2": PAIR_LUT,
    "avx2-pair-lut-4": PAIR_LUT,
    "avx512-popcount": (
        512 / 1.5,
        "512 products by xor, popcount and add on two 512-bit ports, of which one counts bits",
    ),
    "avx512-carry-save": (
        1536 / 4,
        "1536 products by 3 xor, 1 majority, 2 popcounts and 2 adds on the same two ports",
    ),
    "amx-int8": (
        16384 / 16,
        "16 x 16 x 64 products by a tile product of 16 cycles, factors in registers (from L1 about 900); "
        "zeros that fill up a tile are not counted as products",
    ),
}


@dataclass
class Row:
    """One kernel on one layer."""

    layer: str
    kernel: str
    macs: float
    ceiling: float
    dots_median: float
    dots_best: float
    fused_median: float
    fused_best: float
    fused_microseconds: float

    @property
    def share(self) -> float:
        return self.dots_best / self.ceiling


def numbers(layer: tuple[int, ...]) -> list[int]:
    inputs, outputs, groups, kernel, stride, size = layer
    return [inputs, outputs, groups, kernel, kernel, stride, stride, kernel // 2, kernel // 2, 1, 1, size, size]


def title(layer: tuple[int, ...]) -> str:
    inputs, outputs, groups, kernel, stride, size = layer
    shape = f"{kernel}x{kernel}/{stride} {inputs}->{outputs} g{groups} @{size}"
    return f"{shape} (yardstick)" if layer in YARDSTICKS else shape


def measure(layers: list[tuple[int, ...]], names: list[str], rounds: int, repeats: int) -> tuple[list[Row], float]:
    """Rounds over all layers and kernels, so that a slow moment of the machine hits all of them alike."""
    pairs = [(layer, name) for layer in layers for name in names if kernels.supports(name, numbers(layer))]
    timings = {(layer, name): kernels.Timing(name, numbers(layer)) for layer, name in pairs}
    seconds: dict[tuple[tuple[int, ...], str, bool], list[float]] = {}
    clocks = []
    for timing in timings.values():
        timing.time(True, 1)
    for _ in range(rounds):
        for (layer, name), timing in timings.items():
            clocks.append(kernels.core_clock())
            for fused in (False, True):
                runs = 1 if name == "portable" else repeats
                seconds.setdefault((layer, name, fused), []).extend(timing.time(fused, runs))
    clock = statistics.median(clocks)
    rows = []
    for (layer, name), timing in timings.items():
        dots, fused = seconds[layer, name, False], seconds[layer, name, True]
        rates = [timing.macs / value / clock for value in (statistics.median(dots), min(dots))]
        rates += [timing.macs / value / clock for value in (statistics.median(fused), min(fused))]
        microseconds = statistics.median(fused) * 1e6
        rows.append(Row(title(layer), name, timing.macs, CEILINGS[name][0], *rates, microseconds))
    return rows, clock


def show(rows: list[Row], clock: float, names: list[str]) -> None:
    console = Console(width=110)
    console.print(f"{cpu_name()}, core clock {clock / 1e9:.2f} GHz (measured by a chain of multiplications)")
    for name in names:
        ceiling, why = CEILINGS[name]
        console.print(f"ceiling of {name}: {ceiling:.0f} MAC/cycle: {why}", highlight=False)
    table = Table(title="MAC/cycle, median (best)")
    for column in ("layer", "kernel", "dots", "fused", "dots / ceiling", "fused us"):
        table.add_column(column, justify="left" if column in ("layer", "kernel") else "right")
    for row in rows:
        dots = f"{row.dots_median:.0f} ({row.dots_best:.0f})"
        fused = f"{row.fused_median:.0f} ({row.fused_best:.0f})"
        table.add_row(row.layer, row.kernel, dots, fused, f"{row.share:.0%}", f"{row.fused_microseconds:.0f}")
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=10, help="runs of a kernel in one round")
    parser.add_argument("--narrow", action="store_true", help="narrow layers in place of the network's")
    parser.add_argument("--json", action="store_true", help="print rows for machines instead of the table")
    options = parser.parse_args()
    names = [name for name, here in kernels.names() if here and name != "reference"]
    layers = NARROW if options.narrow else LAYERS + YARDSTICKS
    rows, clock = measure(layers, names, options.rounds, options.repeats)
    if options.json:
        print(json.dumps({"cpu": cpu_name(), "clock": clock, "rows": [asdict(row) for row in rows]}, indent=1))
    else:
        show(rows, clock, names)


if __name__ == "__main__":
    main()
