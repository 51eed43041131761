"""What a picture of ImageNet costs to train on: time of a step and memory, for the paper's network in every stage.

    python benchmarks/full_scale.py [--arch 1262-2-4:8:8:16] [--experts 4] [--size 224] [--batch 8] [--steps 3]

Each stage runs in a process of its own, on one thread: the least and the median time of a step, per picture, and the
process's peak memory at `batch` and at twice `batch` pictures, whose difference is what a picture adds.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time

STAGES = {"teacher": ("real", 1), "Stage I, one expert": ("binary_input", 1)}


def measure(arch: str, experts: int, precision: str, size: int, batch: int, steps: int) -> dict[str, float]:
    import torch
    from torch.nn import functional as F

    import ebnet
    from ebnet.train.allocator import keep_freed_memory

    torch.set_num_threads(1)
    keep_freed_memory()
    network = ebnet.create_model(arch, experts=experts, precision=precision).train()
    optimizer = torch.optim.Adam(network.parameters(), fused=True)
    images, labels = torch.randn(batch, 3, size, size), torch.randint(0, 1000, (batch,))
    seconds = []
    for _ in range(steps + 1):
        start = time.perf_counter()
        optimizer.zero_grad()
        F.cross_entropy(network(images), labels).backward()
        optimizer.step()
        seconds.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"median": statistics.median(seconds[1:]) / batch, "least": min(seconds[1:]) / batch, "peak_mb": peak}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", default="1262-2-4:8:8:16")
    parser.add_argument("--experts", type=int, default=4)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(**json.loads(arguments.one))))
        return
    stages = STAGES | {
        f"Stage I, {arguments.experts} experts": ("binary_input", arguments.experts),
        f"Stage II, {arguments.experts} experts": ("binary", arguments.experts),
    }
    print(f"{arguments.arch} at {arguments.size} pixels, batch {arguments.batch}, one thread")
    for title, (precision, experts) in stages.items():
        found = []
        for batch in (arguments.batch, 2 * arguments.batch):
            task = {"arch": arguments.arch, "experts": experts, "precision": precision, "batch": batch}
            task |= {"size": arguments.size, "steps": arguments.steps}
            out = subprocess.run(
                [sys.executable, __file__, "--one", json.dumps(task)], check=True, capture_output=True, text=True
            )
            found.append(json.loads(out.stdout))
        small, large = found
        per_picture = (large["peak_mb"] - small["peak_mb"]) / arguments.batch
        print(
            f"{title:20} {1 / small['median']:6.2f} images/s (best {1 / small['least']:.2f}), "
            f"{small['peak_mb']:.0f} MB, {per_picture:.1f} MB a picture"
        )


if __name__ == "__main__":
    main()
