"""From a fresh process to the first prediction, and how much memory that takes.

    python benchmarks/startup.py                 two tables
    python benchmarks/startup.py --json          the numbers

1262-2-4:8:8:16 with 4 experts, fp16 reals, batch 1, one thread, a warm disk and compiled Python files. The time starts
before `import numpy` and `import ebnet` in a fresh interpreter and ends with the first logits. Memory is the peak
resident size (VmHWM) of that process, above the peak of an interpreter that does nothing and of one that imports numpy
(whose arrays the images and logits are). It includes the pages of libraries that the system has mapped, more of
them where a library was just installed: numpy then has 16.5 MB instead of 16.0. The private part is what the process
wrote itself. The parts are the growth of the resident size from step to step. Medians over fresh processes, in turn.
Experts are laid out when they are first chosen, so later images add those they choose first: `of which experts` is in
the first run, `experts not chosen yet` is the most that can come.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

NETWORK, EXPERTS, SIDE = "1262-2-4:8:8:16", 4, 224

# Imports nothing of its own, so that the bare interpreter is bare.
MEMORY = """
def megabytes(key):
    with open("/proc/self/status", "rb") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(key)) / 1024
"""
MEASURED = "'peak': megabytes(b'VmHWM:'), 'private': megabytes(b'RssAnon:')"
BARE = MEMORY + f"print({{{MEASURED}}})"
NUMPY = MEMORY + f"import numpy\nprint({{{MEASURED}}})"
PREDICTION = (
    MEMORY
    + f"""
import sys, time
times, sizes = [time.perf_counter()], [megabytes(b"VmRSS:")]
def step():
    times.append(time.perf_counter())
    sizes.append(megabytes(b"VmRSS:"))
import numpy
step()
image = numpy.zeros((1, {SIDE}, {SIDE}, 3), numpy.uint8)
import ebnet
ebnet.Engine
step()
engine = ebnet.load(sys.argv[1])
step()
engine(image)
step()
print({{{MEASURED}, "times": times, "sizes": sizes}})
"""
)


def run(code: str, *arguments: str) -> dict:
    """What a fresh process prints. It may keep its compiled Python files, as an installed package does."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return json.loads(done.stdout.replace("'", '"'))


def measure(rounds: int) -> dict[str, dict[str, float]]:
    import ebnet
    from ebnet.runtime.inspect import inspect

    with tempfile.TemporaryDirectory() as folder:
        model = ebnet.create_model(NETWORK, experts=EXPERTS, precision="binary")
        path = str(ebnet.pack(model, Path(folder) / "net.ebn", reals="fp16"))
        chosen = inspect(path).bit_bytes / EXPERTS / 2**20
        runs = [(run(BARE), run(NUMPY), run(PREDICTION, path)) for _ in range(rounds + 1)][1:]

    def median(value) -> float:
        return statistics.median(value(*each) for each in runs)

    def grown(first: int, last: int) -> float:
        return median(lambda bare, numpy, whole: whole["sizes"][last] - whole["sizes"][first])

    def passed(first: int, last: int) -> float:
        return median(lambda bare, numpy, whole: (whole["times"][last] - whole["times"][first]) * 1e3)

    return {
        "milliseconds": {
            "import to first prediction": passed(0, 4),
            "of which import numpy": passed(0, 1),
            "of which import ebnet": passed(1, 2),
            "of which load": passed(2, 3),
            "of which first run": passed(3, 4),
        },
        "megabytes": {
            "peak above the bare interpreter": median(lambda bare, numpy, whole: whole["peak"] - bare["peak"]),
            "peak above interpreter and numpy": median(lambda bare, numpy, whole: whole["peak"] - numpy["peak"]),
            "of it private": median(lambda bare, numpy, whole: whole["private"] - numpy["private"]),
            "of which import numpy": grown(0, 1),
            "of which import ebnet and an image": grown(1, 2),
            "of which load": grown(2, 3),
            "of which first run": grown(3, 4),
            "of which experts": chosen,
            "experts not chosen yet": chosen * (EXPERTS - 1),
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    numbers = measure(arguments.rounds)
    if arguments.json:
        print(json.dumps(numbers))
        return
    for unit, rows in numbers.items():
        table = Table("", unit, title=f"{NETWORK}, {EXPERTS} experts: a fresh process's first prediction")
        for label, value in rows.items():
            table.add_row(label, f"{value:.1f}")
        Console().print(table)


if __name__ == "__main__":
    main()
