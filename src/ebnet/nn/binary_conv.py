"""The binary convolution (eq. 1): sign(x) convolved with sign(w), times a learned scale per output channel."""

import math

import torch
from torch import Tensor, nn

from ebnet.errors import ConfigError, ShapeError
from ebnet.nn.activations import Sign, activation_quantizer
from ebnet.nn.circulant import ORIENTATIONS, circulant
from ebnet.nn.geometry import Geometry, Pair
from ebnet.nn.precision import BinaryLayer, Precision
from ebnet.nn.scaling import DataDrivenScaling
from ebnet.nn.sign import Ste
from ebnet.nn.weights import weight_quantizer


class BinaryConv2d(BinaryLayer):
    """Drop-in for `nn.Conv2d` with binary activations and, from Stage II on, binary weights.

    The binarized input is padded with zeros, as in the paper's networks, so a border tap counts nothing.

    Args:
        scaling: add the data-driven scaling of the output (`DataDrivenScaling`).
        precision: what is binary; `set_precision` changes it later.
        ste: the straight-through estimator of the activations' sign; the weights use the clipped one.
        weights: how weights are quantized, a name of `ebnet.nn.weights`.
        activations: how activations are quantized, a name of `ebnet.nn.activations`; `ste` then plays no part.
        orientations: how many output channels are turned versions of one learned filter (`ebnet.nn.circulant`).
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Pair,
        stride: int | Pair = 1,
        padding: int | Pair | str = 0,
        dilation: int | Pair = 1,
        groups: int = 1,
        bias: bool = False,
        *,
        scaling: bool = False,
        precision: Precision | str = Precision.BINARY_INPUT,
        ste: Ste | str = Ste.CLIP,
        num_experts: int = 1,
        weights: str = "learned-scale",
        activations: str | None = None,
        orientations: int = 1,
    ) -> None:
        super().__init__()
        name = f"{type(self).__name__}({in_channels}, {out_channels}, groups={groups})"
        if min(in_channels, out_channels, groups, num_experts) < 1:
            raise ConfigError(f"{name}, {num_experts} experts: channels, groups and experts must be at least 1")
        if in_channels % groups or out_channels % groups:
            raise ConfigError(f"{name}: groups must divide the input and the output channels")
        self.in_channels, self.out_channels, self.num_experts = in_channels, out_channels, num_experts
        self.kernel_size = _pair("kernel_size", kernel_size, 1)
        self.stride = _pair("stride", stride, 1)
        self.dilation = _pair("dilation", dilation, 1)
        self.padding = _padding(padding, self.kernel_size, self.dilation)
        self.groups = groups
        self.orientations = orientations
        self._check_orientations()
        self.precision = Precision.REAL
        self.input_quantizer = Sign(ste) if activations is None else activation_quantizer(activations, in_channels)
        self.weight_quantizer = weight_quantizer(weights, self.kernel_size)
        learned = num_experts * out_channels // orientations
        self.weight = nn.Parameter(torch.empty(learned, in_channels // groups, *self.kernel_size))
        self.scale = nn.Parameter(torch.ones(out_channels), requires_grad=self.weight_quantizer.learns_scale)
        self.bias = nn.Parameter(torch.zeros(out_channels)) if bias else None
        self.scaling = DataDrivenScaling(in_channels, out_channels) if scaling else None
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        self.move_to(Precision.parse(precision))

    @property
    def geometry(self) -> Geometry:
        return Geometry(self.stride, self.padding, self.dilation, self.groups)

    def forward(self, x: Tensor) -> Tensor:
        self._check(x)
        mean = x.mean((2, 3)) if self._needs_mean else None
        x_hat = self.input_quantizer(x) if self.precision.binary_input else x
        y = self.convolve(x_hat, mean)
        scale = self.scale
        if self.scaling is not None:
            assert mean is not None
            scale = scale * self.scaling(mean)
        y = y * scale.to(y.dtype).view(-1, self.out_channels, 1, 1)
        return y if self.bias is None else y + self.bias.to(y.dtype).view(1, -1, 1, 1)

    def convolve(self, x_hat: Tensor, mean: Tensor | None) -> Tensor:
        """The convolution alone; `mean` is the spatial mean of the real-valued input, for gates."""
        return self.geometry.conv(x_hat, self.used_weight)

    @property
    def used_weight(self) -> Tensor:
        """The weights that the convolution uses: the latent ones, quantized where the precision says so."""
        return self.weight_quantizer(self.filters) if self.precision.binary_weights else self.filters

    @property
    def filters(self) -> Tensor:
        """The latent weights of all output channels: the learned ones, in their orientations where they have some."""
        return self.weight if self.orientations == 1 else circulant(self.weight, self.orientations)

    def move_to(self, precision: Precision) -> None:
        super().move_to(precision)
        # What takes no part learns nothing: processes that train together would wait for its gradient.
        self.input_quantizer.requires_grad_(precision.binary_input)
        self.weight_quantizer.requires_grad_(precision.binary_weights)

    def _becomes_binary(self) -> None:
        self.weight_quantizer.begin(self.filters.detach())
        if self.weight_quantizer.learns_scale:
            super()._becomes_binary()

    @property
    def _needs_mean(self) -> bool:
        return self.scaling is not None

    def _check_orientations(self) -> None:
        if self.orientations not in ORIENTATIONS:
            known = ", ".join(map(str, ORIENTATIONS))
            raise ConfigError(f"orientations={self.orientations!r}: expected one of {known}")
        name = f"{self.orientations} orientations"
        if self.orientations > 1 and self.kernel_size not in ((1, 1), (3, 3)):
            raise ConfigError(f"{name} need a kernel of 1x1 or 3x3, not kernel_size={self.kernel_size}")
        if self.in_channels // self.groups % self.orientations or self.out_channels // self.groups % self.orientations:
            raise ConfigError(
                f"{name} do not divide the {self.in_channels} input and {self.out_channels} output channels "
                f"of {self.groups} groups"
            )

    def _check(self, x: Tensor) -> None:
        if x.dim() != 4 or x.shape[1] != self.in_channels:
            expected = f"[batch, {self.in_channels}, height, width]"
            raise ShapeError(f"{type(self).__name__} expects {expected}, got a tensor {tuple(x.shape)}")

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        text += f", padding={self.padding}, groups={self.groups}, precision={self.precision}"
        return text if self.num_experts == 1 else f"{text}, experts={self.num_experts}"


def _pair(name: str, value: int | Pair, least: int) -> Pair:
    pair = (value, value) if isinstance(value, int) else tuple(value)
    if len(pair) != 2 or any(not isinstance(v, int) or v < least for v in pair):
        raise ConfigError(f"{name}={value!r}: expected one or two whole numbers of at least {least}")
    return pair


def _padding(padding: int | Pair | str, kernel: Pair, dilation: Pair) -> Pair:
    if padding == "valid":
        return 0, 0
    if padding == "same":
        total = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
        if any(t % 2 for t in total):
            raise ConfigError(f"padding='same' needs an odd kernel, got kernel_size={kernel}")
        return total[0] // 2, total[1] // 2
    if isinstance(padding, str):
        raise ConfigError(f"padding={padding!r}: expected a number, a pair, 'same' or 'valid'")
    return _pair("padding", padding, 0)
