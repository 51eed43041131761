"""The door to the native core's training kernels: float32 on the CPU."""

import os

import torch
from torch import Tensor

from ebnet.errors import ConfigError
from ebnet.nn.geometry import Geometry
from ebnet.nn.samples import Samples
from ebnet.nn.sign import Ste

try:
    from ebnet._native import train as kernels
except ImportError:  # a source tree without a build trains through torch alone
    kernels = None  # type: ignore[assignment]


SMALL_MAP = 64
MOST_WEIGHTS, MOST_WEIGHTS_ON_SMALL_MAPS = 3 << 16, 1 << 20
"""Of one expert and group, for which the kernels were measured to convolve faster than one torch convolution per
expert: on large maps as many as stay in a core's second cache, on maps of up to 64 positions more."""


def enabled() -> bool:
    """Whether training uses the kernels; EBNET_TRAIN=torch, for comparison and doubt, computes through torch alone."""
    path = os.environ.get("EBNET_TRAIN", "native")
    if path not in ("native", "torch"):
        raise ConfigError(f"EBNET_TRAIN={path!r}: expected native or torch")
    return path == "native" and kernels is not None


def serves(*tensors: Tensor) -> bool:
    """Whether the kernels compute with these tensors."""
    return enabled() and all(t.dtype == torch.float32 and t.device.type == "cpu" for t in tensors)


def convolves(x: Tensor, theta: Tensor, geometry: Geometry) -> bool:
    """Whether `forward` and `input_gradient` are the faster way; `x` may be the input or the output's gradient."""
    most = MOST_WEIGHTS_ON_SMALL_MAPS if x.shape[2:].numel() <= SMALL_MAP else MOST_WEIGHTS
    return theta[0].numel() // geometry.groups <= most and serves(x, theta) and x.is_contiguous()


def forward(x: Tensor, theta: Tensor, samples: Samples, geometry: Geometry, ste: Ste | None) -> Tensor:
    """Each sample convolved with its expert's weights, or, with an estimator, with their signs."""
    theta = theta.detach().contiguous()
    y = x.new_empty(len(x), theta.shape[1], *geometry.output_size(x.shape[2:], theta.shape[3:]))
    kernels.forward(x.detach(), theta, samples.chosen, _numbers(geometry), ste is not None, y, torch.get_num_threads())
    return y


def input_gradient(
    dy: Tensor, x: Tensor, theta: Tensor, samples: Samples, geometry: Geometry, ste: Ste | None
) -> Tensor:
    """The gradient of `forward`'s input."""
    theta, dx = theta.contiguous(), torch.empty_like(x)
    kernels.input_gradient(dy, theta, samples.chosen, _numbers(geometry), ste is not None, dx, torch.get_num_threads())
    return dx


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
