"""What experts cost in training: images/s of N experts against one, and against the naive formulation.

    python benchmarks/training.py [--arch 1111-0.5-1:1:1:1] [--size 64] [--batch 64] [--experts 4] [--rounds 15]

The contestants take turns, one step each, so that other work on the machine hits all alike; the table gives the median
and the least CPU time of a step (all threads together, which waiting for other programs does not lengthen). The naive
expert convolution picks a weight tensor for each picture and runs one grouped convolution over the batch; autograd does
the rest, so its gradients are the exact ones too. The last table says where the time of a step of the loop goes.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor
from torch.nn import functional as F

from ebnet.data import Loader, Normalise, RandomResizedCrop, open_generated
from ebnet.models.config import NetworkConfig
from ebnet.models.network import ExpertBinaryNetwork
from ebnet.nn import Precision
from ebnet.train.allocator import keep_freed_memory
from ebnet.train.losses import soft_cross_entropy
from naive_expert_conv import use_naive


class Contestant:
    """A network and its optimizer, which take one step at a time."""

    def __init__(self, name: str, config: NetworkConfig, precision: Precision, naive: bool = False) -> None:
        torch.manual_seed(0)
        self.name, self.seconds = name, list[float]()
        self.network = ExpertBinaryNetwork(config, precision).train()
        self.optimizer = torch.optim.Adam(self.network.parameters(), 1e-3, fused=True)
        if naive:
            use_naive(self.network)

    def step(self, images: Tensor, targets: Tensor) -> None:
        begin = time.process_time()
        self.optimizer.zero_grad()
        soft_cross_entropy(self.network(images), targets).backward()
        self.optimizer.step()
        self.seconds.append(time.process_time() - begin)


def compare(arguments: argparse.Namespace, precision: Precision) -> Table:
    def config(experts: int) -> NetworkConfig:
        return NetworkConfig(arguments.arch, experts=experts, num_classes=10)

    contestants = [
        Contestant("1 expert", config(1), precision),
        Contestant(f"{arguments.experts} experts", config(arguments.experts), precision),
        Contestant(f"{arguments.experts} experts, naive", config(arguments.experts), precision, naive=True),
    ]
    images = torch.randn(arguments.batch, 3, arguments.size, arguments.size)
    targets = F.one_hot(torch.arange(arguments.batch) % 10, 10).float()
    for _ in range(arguments.rounds + 2):
        for contestant in contestants:
            contestant.step(images, targets)
    title = f"{arguments.arch}, {arguments.size} px, batch {arguments.batch}, {precision.value}"
    table = Table("network", "images/s", "ms median", "ms least", "x one, median", "x one, least", title=title)
    one = contestants[0].seconds[2:]
    for contestant in contestants:
        times = contestant.seconds[2:]  # the first two warm up
        median, least = statistics.median(times), min(times)
        table.add_row(
            contestant.name,
            f"{arguments.batch / median:.0f}",
            f"{1e3 * median:.1f}",
            f"{1e3 * least:.1f}",
            f"{median / statistics.median(one):.2f}",
            f"{least / min(one):.2f}",
        )
    return table


def anatomy(arguments: argparse.Namespace) -> Table:
    """Where a step's time goes, for the network with experts in Stage I."""
    data = open_generated("train", 8 * arguments.batch, side=arguments.size)
    normalise = Normalise(data.statistics.mean, data.statistics.std)
    loader = Loader(data, RandomResizedCrop(arguments.size), arguments.batch, shuffle=True, drop_last=True)
    config = NetworkConfig(arguments.arch, experts=arguments.experts, num_classes=10)
    contestant = Contestant("", config, Precision.BINARY_INPUT)
    spent: dict[str, list[float]] = {"data": [], "normalise": [], "forward": [], "backward": [], "optimizer": []}

    def timed(part: str, action: Callable[[], Any]) -> Any:
        begin = time.process_time()
        result = action()
        spent[part].append(time.process_time() - begin)
        return result

    batches = iter(loader.epoch(0))
    for _ in range(len(loader)):
        raw, labels = timed("data", lambda: next(batches))
        images = timed("normalise", lambda raw=raw: normalise.tensor(raw))
        contestant.optimizer.zero_grad()
        targets = F.one_hot(labels, 10).float()
        loss = timed("forward", lambda i=images, t=targets: soft_cross_entropy(contestant.network(i), t))
        timed("backward", loss.backward)
        timed("optimizer", contestant.optimizer.step)
    medians = {part: statistics.median(times[1:]) for part, times in spent.items()}
    table = Table(
        "part of a step", "ms", "%", title=f"{arguments.experts} experts, Stage I, decoded pictures in memory"
    )
    for part, median in medians.items():
        table.add_row(part, f"{1e3 * median:.1f}", f"{100 * median / sum(medians.values()):.1f}")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", default="1111-0.5-1:1:1:1")
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--experts", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    keep_freed_memory()
    console = Console(width=110)
    for precision in (Precision.BINARY_INPUT, Precision.BINARY):
        console.print(compare(arguments, precision))
    console.print(anatomy(arguments))


if __name__ == "__main__":
    main()
