"""The door to the native core's training kernels: float32 on the CPU."""

import torch
from torch import Tensor

from ebnet.nn.geometry import Geometry
from ebnet.nn.samples import Samples
from ebnet.nn.sign import Ste

try:
    from ebnet._native import train as kernels
except ImportError:  # a source tree without a build trains through torch alone
    kernels = None


def serves(*tensors: Tensor) -> bool:
    """Whether the kernels compute with these tensors."""
    return kernels is not None and all(t.dtype == torch.float32 and t.device.type == "cpu" for t in tensors)


def sample_gradients(
    x: Tensor, dy: Tensor, theta: Tensor, samples: Samples, geometry: Geometry, ste: Ste | None
) -> tuple[Tensor, Tensor]:
    """As `ebnet.nn.sample_gradients.sample_gradients`, in one pass that holds a tile of a gradient at a time."""
    x, dy, theta = x.contiguous(), dy.contiguous(), theta.detach().contiguous()
    dtheta, dgate = torch.empty_like(theta), x.new_empty(len(x), len(theta))
    estimator = "one" if ste is None or ste is Ste.IDENTITY else ste.value
    kernels.sample_gradients(
        x, dy, theta, samples.chosen, _numbers(geometry), estimator, dtheta, dgate, torch.get_num_threads()
    )
    return dtheta, dgate


def _numbers(geometry: Geometry) -> tuple[int, ...]:
    stride, padding, dilation, groups = geometry
    return *stride, *padding, *dilation, groups
