"""From a fresh process to the first prediction, and how much memory that takes.

    python benchmarks/startup.py                 a table
    python benchmarks/startup.py --json          the numbers

1262-2-4:8:8:16 with 4 experts, fp16 reals, batch 1, one thread, a warm disk. The time starts before `import ebnet` in a
fresh interpreter and ends with the first logits. Memory is the peak resident size above the interpreter's before the
import, and above the interpreter with numpy imported (whose arrays the images and logits are). Medians over fresh
processes.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

NETWORK, EXPERTS, SIDE = "1262-2-4:8:8:16", 4, 224

CHILD = """
import json, sys, time
def kilobytes(key):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(key))
bare = kilobytes("VmRSS:")
start = time.perf_counter()
import numpy
numpy_seconds, with_numpy = time.perf_counter() - start, kilobytes("VmRSS:")
image = numpy.zeros((1, 224, 224, 3), numpy.uint8)
start = time.perf_counter()
import ebnet
engine = ebnet.load(sys.argv[1])
loaded = time.perf_counter()
engine(image)
end = time.perf_counter()
peak = kilobytes("VmHWM:")
print(json.dumps({
    "import_to_prediction_ms": (end - start + numpy_seconds) * 1e3,
    "of_which_numpy_ms": numpy_seconds * 1e3,
    "of_which_first_run_ms": (end - loaded) * 1e3,
    "peak_above_interpreter_mb": (peak - bare) / 1024,
    "peak_above_interpreter_and_numpy_mb": (peak - with_numpy) / 1024,
}))
"""


def measure(rounds: int) -> dict[str, float]:
    import ebnet

    with tempfile.TemporaryDirectory() as folder:
        model = ebnet.create_model(NETWORK, experts=EXPERTS, precision="binary")
        path = ebnet.pack(model, Path(folder) / "net.ebn", reals="fp16")
        runs = []
        for _ in range(rounds + 1):
            done = subprocess.run([sys.executable, "-c", CHILD, str(path)], check=True, capture_output=True, text=True)
            runs.append(json.loads(done.stdout))
    return {key: statistics.median(run[key] for run in runs[1:]) for key in runs[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    numbers = measure(arguments.rounds)
    if arguments.json:
        print(json.dumps(numbers))
        return
    table = Table("", "median", title=f"{NETWORK}, {EXPERTS} experts: a fresh process's first prediction")
    for name, value in numbers.items():
        label, unit = name.rsplit("_", 1)
        table.add_row(label.replace("_", " "), f"{value:.1f} {unit.replace('mb', 'MB')}")
    Console().print(table)


if __name__ == "__main__":
    main()
