"""The door to the native core's training kernels: float32 on the CPU."""

import os

import torch
from torch import Tensor, nn

from ebnet.errors import ConfigError

try:
    from ebnet._native import train as kernels
except ImportError:  # a source tree without a build trains through torch alone
    kernels = None  # type: ignore[assignment]


def enabled() -> bool:
    """Whether training uses the kernels; EBNET_TRAIN=torch, for comparison and doubt, computes through torch alone."""
    path = os.environ.get("EBNET_TRAIN", "native")
    if path not in ("native", "torch"):
        raise ConfigError(f"EBNET_TRAIN={path!r}: expected native or torch")
    return path == "native" and kernels is not None


def serves(*tensors: Tensor) -> bool:
    """Whether the kernels compute with these tensors."""
    return enabled() and all(t.dtype == torch.float32 and t.is_cpu for t in tensors)


def parameter(module: nn.Module, name: str) -> Tensor:
    """A module's tensor by its own table: torch's way to an attribute is long, and narrow networks feel it."""
    found = module._parameters.get(name)
    return getattr(module, name) if found is None else found
