"""The training of one stage, a step whenever asked: what `training.py` starts, a process for each contestant.

    python benchmarks/training_step.py '{"recipe": "evidence", "changes": {}, "stage": "stage2", "threads": 1}'

Each line of the input is a question, answered by one line of JSON: `work` (images and floating-point operations of a
step), `memory` (bytes it takes at its peak), `seconds`, `parts` (the shares of its operations). The images are made up,
lie in memory, and are cut and normalised as the recipe says: a step here is a whole step of `ebnet train`.
"""

import ctypes
import json
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

import ebnet.train
from ebnet.cost import profile as cost
from ebnet.data import open_generated
from ebnet.models.network import ExpertBinaryNetwork
from ebnet.train.allocator import keep_freed_memory
from ebnet.train.loop import Trainer
from ebnet.train.phases import PHASES, Phase, start_network

CLASSES, BATCHES = 10, 4
M_MMAP_THRESHOLD = -3


class Training:
    """A stage of a recipe under way."""

    def __init__(self, recipe: str, changes: dict[str, Any], stage: str, threads: int) -> None:
        torch.set_num_threads(threads)
        self.recipe = ebnet.train.load_recipe(recipe, changes)
        self.settings, data = self.recipe.settings(stage), self.recipe.data
        self.channels = 1 if "mnist" in data.name else 3
        count, side = BATCHES * self.settings.batch_size, data.memory_side or data.size
        made = open_generated("train", count, CLASSES, side, self.channels)
        pictures = ebnet.train.Pictures.open(data, (made, made))
        self.loader = pictures.training(self.settings.batch_size, seed=0)
        source = self.recipe.table(PHASES[stage].name).distill_from
        self.trainer = Trainer(
            self._network(PHASES[stage]),
            self._network(PHASES[source]) if source else None,
            PHASES[stage],
            self.recipe,
            len(self.loader),
            pictures.normalise,
            torch.device("cpu"),
        )
        self.batches = self._endless()

    def work(self) -> dict[str, int]:
        """Two operations a multiply-accumulate: forward and two gradients; of a teacher forward alone."""
        networks = [(self.trainer.network, 6), (self.trainer.teacher, 2)]
        side, batch = self.recipe.data.size, self.settings.batch_size
        counts = [(cost(network.config, side), times) for network, times in networks if network is not None]
        flops = sum(times * (count.bops + count.real_macs) for count, times in counts)
        return {"images": batch, "flops": batch * flops}

    def memory(self) -> int:
        """Beyond the network and its optimizer's state, which are there before; to be asked first.

        Every large block is mapped by itself meanwhile: in a heap, what is freed between others stays resident, and the
        peak would be an accident of their order.
        """
        libc = ctypes.CDLL(None)
        libc.mallopt(M_MMAP_THRESHOLD, 2**16)
        self._step()
        self.trainer.optimizer.zero_grad()
        libc.malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
        before = resident("VmRSS")
        self._step()
        return resident("VmHWM") - before

    def seconds(self) -> float:
        """Of the second of two steps: the first brings back to the caches what the others' turns drove out."""
        keep_freed_memory()  # as `ebnet train` does
        self._step()
        begin = time.perf_counter()
        self._step()
        return time.perf_counter() - begin

    def parts(self) -> dict[str, float]:
        """Each operation's share of the time, its callees' left out, by torch's profiler."""
        with profile(activities=[ProfilerActivity.CPU]) as seen:
            for _ in range(BATCHES):
                self._step()
        own = {event.key: event.self_cpu_time_total for event in seen.key_averages()}
        return {name: spent / sum(own.values()) for name, spent in own.items()}

    def _step(self) -> None:
        self.trainer.step(*next(self.batches))

    def _endless(self) -> Any:
        step = 0
        while True:
            for images, labels in self.loader.epoch(step // BATCHES):
                yield images, labels, step
                step += 1

    def _network(self, phase: Phase) -> ExpertBinaryNetwork:
        return start_network(phase.config(self.recipe, CLASSES, self.channels), phase, None, seed=0)


def resident(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith(field)))


def main() -> None:
    training = Training(**json.loads(sys.argv[1]))
    for question in sys.stdin:
        print(json.dumps(getattr(training, question.strip())()), flush=True)


if __name__ == "__main__":
    main()
