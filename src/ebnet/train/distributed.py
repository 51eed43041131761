"""One process or many: what `torchrun` says about this process, and sums over all of them.

Every function also works, and does nothing special, in a single process.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from ebnet.errors import ConfigError


def is_distributed() -> bool:
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def rank() -> int:
    return dist.get_rank() if is_distributed() else 0


def world_size() -> int:
    return dist.get_world_size() if is_distributed() else 1


def speaks_for_all() -> bool:
    """Whether this is the one process that prints; also before and after the processes are joined."""
    return os.environ.get("RANK", "0") == "0"


def barrier() -> None:
    if is_distributed():
        dist.barrier()


def sum_over_ranks(values: Tensor) -> Tensor:
    """The sum, the same on every rank."""
    if is_distributed():
        dist.all_reduce(values)
    return values


def gather_over_ranks(values: Tensor) -> Tensor:
    """The rows of every rank, in the order of the ranks, the same everywhere; each must have equally many."""
    if not is_distributed():
        return values
    parts = [torch.empty_like(values) for _ in range(world_size())]
    dist.all_gather(parts, values.contiguous())
    return torch.cat(parts)


def any_rank(flag: bool, device: torch.device) -> bool:
    """True everywhere as soon as it is true somewhere."""
    return bool(sum_over_ranks(torch.tensor(float(flag), device=device)).item()) if is_distributed() else flag


def pick_device(name: str) -> torch.device:
    """`auto`: the CUDA device of this process's place on its machine if there is one, else the CPU."""
    local = int(os.environ.get("LOCAL_RANK", "0"))
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda":
        name = f"cuda:{local}"
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(f"compute.device = {name!r} cannot be used here: {str(error).splitlines()[0]}") from error
    return device


@contextmanager
def process_group(device: torch.device) -> Iterator[None]:
    """Join the processes that `torchrun` started (gloo on CPU, nccl on GPU); leave them at the end."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1 or dist.is_initialized():
        yield
        return
    if device.type == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield
        dist.barrier()
    finally:
        # At the end torch joins gloo's threads while it holds the interpreter's lock, and a thread that still has a
        # Python tensor to let go of waits for that lock: a deadlock. After a barrier, which has no such tensor, and a
        # moment without the lock, they have none left.
        time.sleep(0.1)
        dist.destroy_process_group()


def part_of_batch(batch_size: int, accumulation: int) -> int:
    """How many pictures of a step one process holds at a time."""
    parts = world_size() * accumulation
    if batch_size % parts:
        raise ConfigError(
            f"batch_size = {batch_size} cannot be split into {world_size()} processes x {accumulation} accumulated "
            f"parts; use a multiple of {parts}"
        )
    return batch_size // parts


class _SumOverRanks(torch.autograd.Function):
    """A sum over all processes that can be differentiated: the gradient is the sum of their gradients."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        return sum_over_ranks(values.clone())

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return sum_over_ranks(gradient.contiguous().clone())


class SyncedBatchNorm2d(nn.BatchNorm2d):
    """Batch normalisation with the statistics of all processes' pictures, on any backend.

    torch.nn.SyncBatchNorm is for CUDA only. Here the sums go through an all-reduce that autograd can differentiate, so
    the gradient is that of the undivided batch too. Every process must hold equally many pictures.
    """

    def forward(self, input: Tensor) -> Tensor:
        if not (self.training and is_distributed()):
            return super().forward(input)
        channels, count = input.shape[1], input.numel() // input.shape[1] * world_size()
        # Two reductions rather than one of sums and squares: E[x^2] - E[x]^2 would cancel.
        mean = _SumOverRanks.apply(input.sum((0, 2, 3))) / count
        centred = input - mean.view(1, channels, 1, 1)
        variance = _SumOverRanks.apply(centred.square().sum((0, 2, 3))) / count
        self._track(mean.detach(), variance.detach(), count)
        factor = torch.rsqrt(variance + self.eps)
        if self.weight is not None:
            factor = factor * self.weight
        output = centred * factor.view(1, channels, 1, 1)
        return output if self.bias is None else output + self.bias.view(1, channels, 1, 1)

    def _track(self, mean: Tensor, variance: Tensor, count: int) -> None:
        if not self.track_running_stats or self.running_mean is None or self.running_var is None:
            return
        assert self.num_batches_tracked is not None
        self.num_batches_tracked.add_(1)
        momentum = self.momentum if self.momentum is not None else 1.0 / float(self.num_batches_tracked)
        self.running_mean.lerp_(mean, momentum)
        self.running_var.lerp_(variance * (count / (count - 1)), momentum)


def sync_batch_norm(model: nn.Module) -> None:
    """Let every batch norm of a model take its statistics over all processes (in place; names and state stay)."""
    for module in model.modules():
        if type(module) is nn.BatchNorm2d:
            module.__class__ = SyncedBatchNorm2d
