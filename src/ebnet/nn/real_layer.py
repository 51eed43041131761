"""The real layers around the binary ones (stems, shortcuts), each one native call forward and one backward.

A `RealLayer` is an average pool (or none), a convolution, a batch norm and an activation, as their torch modules hold
them. `RealGraph` runs some of them as one differentiable operation: narrow networks spend more time on calls than on
arithmetic. The modules themselves, called one after another, are the specification, and what runs on other devices and
types.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from ebnet.nn import native

Shape = tuple[int, int, int, int]


class Saved(NamedTuple):
    """What a layer's backward pass needs of its forward pass, beside the input."""

    z: Tensor | None
    """The convolution's output, in the kernels' own order."""
    statistics: Tensor
    """[2, channels]: the mean and one over the standard deviation it was normalised by."""
    training: bool


@dataclass(frozen=True, eq=False)
class RealLayer:
    """Modules that are computed together; `activation` is a ReLU, a PReLU or None."""

    conv: nn.Conv2d
    norm: nn.BatchNorm2d
    activation: nn.Module | None = None
    pool: int = 1

    @property
    def parameters(self) -> tuple[Tensor, ...]:
        slope = (native.parameter(self.activation, "weight"),) if isinstance(self.activation, nn.PReLU) else ()
        return (
            native.parameter(self.conv, "weight"),
            native.parameter(self.norm, "weight"),
            native.parameter(self.norm, "bias"),
            *slope,
        )

    @property
    def known(self) -> bool:
        """Whether the kernels compute such modules."""
        conv, norm = self.conv, self.norm
        return (
            type(conv) is nn.Conv2d
            and (conv.groups, conv.dilation, conv.bias, conv.padding_mode) == (1, (1, 1), None, "zeros")
            and conv.stride[0] == conv.stride[1]
            and isinstance(conv.padding, tuple)
            and conv.padding[0] == conv.padding[1]
            and norm.affine
            and norm.track_running_stats
            and norm.momentum is not None
            and (self.activation is None or type(self.activation) in (nn.ReLU, nn.PReLU))
            and (not isinstance(self.activation, nn.PReLU) or self.activation.num_parameters == norm.num_features)
        )

    @property
    def watched(self) -> bool:
        """Whether somebody looks at a module's calls, or its statistics are taken over many processes."""
        return bool(self.conv._forward_hooks or self.norm._forward_hooks) or type(self.norm) is not nn.BatchNorm2d

    def output_shape(self, x: Shape) -> Shape:
        """Of the output; a shape that torch has an error for is answered with an empty one."""
        return _output_shape(self._geometry(x), self.conv.in_channels, self.norm.training)

    def forward(self, x: Tensor, y: Tensor, channel: int, keep: bool) -> Saved:
        """Write the channels of `y` from `channel` on."""
        norm, geometry = self.norm, self._geometry(_shape(x))
        training = norm.training
        statistics = x.new_empty(2, norm.num_features)
        z = x.new_empty(_storage(geometry)) if keep else None
        if training:
            norm.num_batches_tracked.add_(1)  # type: ignore[union-attr]
        address = statistics.data_ptr()
        native.kernels.real_forward(
            geometry,
            self._activation,
            training,
            norm.eps,
            norm.momentum,  # type: ignore[arg-type]
            x.data_ptr(),
            (*self._addresses(), norm.running_mean.data_ptr(), norm.running_var.data_ptr()),  # type: ignore[union-attr]
            address,
            address + 4 * norm.num_features,
            0 if z is None else z.data_ptr(),
            y.data_ptr() + 4 * channel * y.stride(1),
            y.stride(0),
            torch.get_num_threads(),
        )
        return Saved(z, statistics, training)

    def backward(
        self, x: Tensor, saved: Saved, dy: Tensor, channel: int, dx: Tensor | None, accumulate: bool
    ) -> list[Tensor]:
        """The gradients of the parameters; that of the input is written or added to `dx`."""
        assert saved.z is not None
        gradients = [torch.empty_like(parameter) for parameter in self.parameters]
        addresses = [gradient.data_ptr() for gradient in gradients]
        address = saved.statistics.data_ptr()
        native.kernels.real_backward(
            self._geometry(_shape(x)),
            self._activation,
            saved.training,
            x.data_ptr(),
            self._addresses(),
            address,
            address + 4 * self.norm.num_features,
            saved.z.data_ptr(),
            dy.data_ptr() + 4 * channel * dy.stride(1),
            dy.stride(0),
            0 if dx is None else dx.data_ptr(),
            accumulate,
            addresses if len(addresses) == 4 else (*addresses, 0),
            torch.get_num_threads(),
        )
        return gradients

    @property
    def _activation(self) -> str:
        if self.activation is None:
            return "none"
        return "prelu" if isinstance(self.activation, nn.PReLU) else "relu"

    def _addresses(self) -> tuple[int, int, int, int]:
        weight, gamma, beta, *slope = (parameter.data_ptr() for parameter in self.parameters)
        return weight, gamma, beta, slope[0] if slope else 0

    def _geometry(self, x: Shape) -> tuple[int, ...]:
        conv = self.conv
        return (
            *x,
            self.pool,
            conv.out_channels,
            *conv.kernel_size,
            conv.stride[0],
            conv.padding[0],  # type: ignore[arg-type]
        )


@dataclass(frozen=True, eq=False)
class MaxPoolLayer:
    """A max pool between real layers."""

    module: nn.MaxPool2d
    parameters: tuple[Tensor, ...] = ()

    @property
    def known(self) -> bool:
        module = self.module
        numbers = (module.kernel_size, module.stride, module.padding)
        return (
            all(isinstance(number, int) for number in numbers)
            and 2 * module.padding < module.kernel_size <= 15  # type: ignore[operator]
            and not module.ceil_mode
            and module.dilation == 1
        )

    @property
    def watched(self) -> bool:
        return bool(self.module._forward_hooks)

    def output_shape(self, x: Shape) -> Shape:
        *_, kernel, stride, padding = self._geometry(x)
        batch, channels, height, width = x
        down, right = (max(0, (side + 2 * padding - kernel) // stride + 1) for side in (height, width))
        return batch, channels, down, right

    def forward(self, x: Tensor, y: Tensor, channel: int, keep: bool) -> Tensor | None:
        """Write the channels of `y` from `channel` on; returns where in each window the value was."""
        geometry = self._geometry(_shape(x))
        place = torch.empty(self.output_shape(_shape(x)), dtype=torch.uint8) if keep else None
        to = y.data_ptr() + 4 * channel * y.stride(1)
        where = 0 if place is None else place.data_ptr()
        native.kernels.max_pool(geometry, x.data_ptr(), to, y.stride(0), where, torch.get_num_threads())
        return place

    def backward(
        self, x: Tensor, place: Tensor, dy: Tensor, channel: int, dx: Tensor | None, accumulate: bool
    ) -> list[Tensor]:
        """Write or add to `dx`; there are no parameters."""
        if dx is not None:
            from_ = dy.data_ptr() + 4 * channel * dy.stride(1)
            native.kernels.max_pool_gradient(
                self._geometry(_shape(x)),
                place.data_ptr(),
                from_,
                dy.stride(0),
                dx.data_ptr(),
                accumulate,
                torch.get_num_threads(),
            )
        return []

    def _geometry(self, x: Shape) -> tuple[int, ...]:
        return *x, self.module.kernel_size, self.module.stride, self.module.padding  # type: ignore[return-value]


@dataclass(frozen=True)
class Step:
    """A layer from one map to (some channels of) another; maps are numbered, 0 is the input, the last the output."""

    layer: RealLayer | MaxPoolLayer
    source: int
    target: int
    channel: int = 0


class RealGraph:
    """Layers that run as one operation. Each map is written before it is read."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = tuple(steps)
        self.known = all(step.layer.known for step in self.steps)

    def serves(self, x: Tensor) -> bool:
        """Whether the kernels compute this graph of `x`; else its modules do, one after another."""
        if not self.known or torch.compiler.is_compiling():
            return False
        tensors = [x, *self.parameters]
        return (
            native.serves(*tensors)
            and x.dim() == 4
            and all(map(Tensor.is_contiguous, tensors))
            and not any(step.layer.watched for step in self.steps)
            and all(map(all, self._shapes(_shape(x))))
        )

    def __call__(self, x: Tensor) -> Tensor:
        parameters = self.parameters
        if torch.is_grad_enabled() and (x.requires_grad or any(p.requires_grad for p in parameters)):
            return _Run.apply(x, self, *parameters)
        return self.run(x, keep=False)[0][-1]

    @property
    def parameters(self) -> list[Tensor]:
        return [parameter for step in self.steps for parameter in step.layer.parameters]

    def run(self, x: Tensor, keep: bool) -> tuple[list[Tensor], list[Any]]:
        """All maps, and what the steps' backward passes need."""
        maps = [x, *(x.new_empty(shape) for shape in self._shapes(_shape(x))[1:])]
        saved = [step.layer.forward(maps[step.source], maps[step.target], step.channel, keep) for step in self.steps]
        return maps, saved

    def gradients(self, maps: list[Tensor], saved: list[Any], dy: Tensor, input_too: bool) -> list[Tensor | None]:
        """Of the input, then of the parameters."""
        last = len(maps) - 1
        d: list[Tensor | None] = [None] * last + [dy]
        found: list[Tensor] = []
        for step, kept in zip(reversed(self.steps), reversed(saved), strict=True):
            above, below = d[step.target], d[step.source]
            assert above is not None
            accumulate = below is not None
            if below is None and (step.source or input_too):
                below = d[step.source] = torch.empty_like(maps[step.source])
            found[:0] = step.layer.backward(maps[step.source], kept, above, step.channel, below, accumulate)
        return [d[0], *found]

    def _shapes(self, x: Shape) -> list[Shape]:
        shapes = {0: x}
        for step in self.steps:
            made = step.layer.output_shape(shapes[step.source])
            channels = max(shapes.get(step.target, made)[1], step.channel + made[1])
            shapes[step.target] = (made[0], channels, *made[2:])
        return [shapes[number] for number in range(len(shapes))]


class _Run(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, graph: RealGraph, *parameters: Tensor) -> Tensor:
        maps, ctx.kept = graph.run(x, keep=True)
        ctx.save_for_backward(x, *parameters)
        ctx.graph, ctx.between, ctx.shape = graph, maps[1:-1], maps[-1].shape
        return maps[-1]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        x = ctx.saved_tensors[0]
        dy = dy.contiguous()
        dx, *gradients = ctx.graph.gradients([x, *ctx.between, dy], ctx.kept, dy, ctx.needs_input_grad[0])
        ctx.between = ctx.kept = None
        return dx, None, *gradients


def _shape(x: Tensor) -> Shape:
    batch, channels, height, width = x.shape
    return batch, channels, height, width


@lru_cache(1024)
def _storage(geometry: tuple[int, ...]) -> int:
    return native.kernels.real_storage(geometry)


@lru_cache(1024)
def _output_shape(geometry: tuple[int, ...], channels: int, training: bool) -> Shape:
    batch, own, height, width, pool, out, kernel_h, kernel_w, stride, padding = geometry
    height = max(0, (-(-height // pool) + 2 * padding - kernel_h) // stride + 1)
    width = max(0, (-(-width // pool) + 2 * padding - kernel_w) // stride + 1)
    fits = own == channels and not (training and batch * height * width == 1)
    return batch, out if fits else 0, height, width
