"""Weight and gate gradients from per-sample weight gradients, of which only a bounded chunk exists at a time.

With G_b = wgrad(x_b, dy_b), the weight gradient of sample b alone, and e the expert chosen for b, an expert
convolution needs

    totals[e] = sum of G_b over the samples of e     (the gradient of expert e's weights)
    scores_bi = <G_b, Theta_i> for every expert i    (the gradient of the gate)

G_b is as large as the weights, so all of them together would be batch x weights: here a chunk is made, used for both
and overwritten. A chunk costs as many operations as the ordinary weight gradient of its samples; the sum and the dot
products add (1 + N) / L of that on a map of L positions. Two ways to make one:

    products:     G_b = dy_b [out, L] @ columns(x_b) [L, taps * in]. Columns are copied from a channels-last input in
                  whole runs of channels; with a 1x1 kernel there is nothing to copy. Best on small maps, where a
                  convolution would spend its time on reordering weights.
    convolution:  one weight-gradient convolution with (samples * groups) groups. Best where columns would be large.
"""

import math

import torch
from torch import Tensor

from ebnet.nn.geometry import Geometry

CHUNK = 1 << 20
"""Most numbers in one temporary, whatever the batch (a single output channel's weights may be more)."""


def sample_gradients(theta: Tensor, geometry: Geometry, positions: int) -> "ByProducts | ByConvolution":
    """The faster way for these weights [experts, out, in / groups, kh, kw] and an output map of `positions`."""
    taps = theta[0, 0, 0].numel()
    small = taps == 1 or positions <= 64 or (geometry.groups == 1 and positions <= 256)
    return (ByProducts if small else ByConvolution)(theta, geometry)


class ByProducts:
    """Per-sample weight gradients as matrix products; weights are kept as [experts, groups, rows, taps * in]."""

    def __init__(self, theta: Tensor, geometry: Geometry) -> None:
        self.shape, self.geometry = theta.shape, geometry
        self.theta = self._by_tap(theta)
        self.totals = torch.zeros_like(self.theta)
        self.products, self.columns, self.padded = Scratch(), Scratch(), Scratch()

    def add(self, expert: int, dy: Tensor, x: Tensor, mask: Tensor | None) -> Tensor:
        """Add the samples of `expert` to its total and return their scores [samples, experts].

        `mask` [out, in / groups, kh, kw] multiplies every G_b before its dot products.
        """
        directions = self.theta if mask is None else self.theta * self._by_tap(mask[None])
        experts, groups, rows, fan_in = directions.shape
        scores = dy.new_zeros(len(dy), experts)
        dy = dy.reshape(len(dy), groups, rows, -1)
        samples = max(1, CHUNK // (groups * fan_in * dy.shape[3]))
        for start in range(0, len(dy), samples):
            some = slice(start, start + samples)
            columns = self._columns(x[some])
            tile = max(1, CHUNK // (len(columns) * fan_in))
            for first in range(0, rows, tile):
                outs = slice(first, first + tile)
                part = dy[some, :, outs].flatten(0, 1)
                gradients = self.products.take(dy, len(part), part.shape[1], fan_in)
                gradients = torch.bmm(part, columns, out=gradients).unflatten(0, (-1, groups))
                scores[some] += gradients.flatten(1) @ directions[:, :, outs].flatten(1).T
                self.totals[expert, :, outs] += gradients.sum(0)
        return scores

    def weight_gradients(self) -> Tensor:
        """The experts' totals in the shape of the weights."""
        experts, out, cin, *_ = self.shape
        return self.totals.view(experts, out, -1, cin).transpose(2, 3).reshape(self.shape)

    def _columns(self, x: Tensor) -> Tensor:
        """What each output position sees: [samples * groups, positions, taps * channels of a group]."""
        samples, channels, *size = x.shape
        stride, padding, dilation, groups = self.geometry
        kernel = self.shape[3:]
        pictures, depth = samples * groups, channels // groups
        if tuple(kernel) == (1, 1) and padding == (0, 0):
            return x[:, :, :: stride[0], :: stride[1]].reshape(pictures, depth, -1).transpose(1, 2)
        # One picture per group, channels last: the taps of a kernel row are then one run of memory.
        height, width = size
        top, left = padding
        padded = self.padded.take(x, pictures, height + 2 * top, width + 2 * left, depth).zero_()
        inside = padded[:, top : top + height, left : left + width]
        inside.copy_(x.reshape(pictures, depth, height, width).permute(0, 2, 3, 1))
        picture, down, right, _ = padded.stride()
        positions = [
            (n + 2 * p - d * (k - 1) - 1) // s + 1
            for n, p, d, k, s in zip(size, padding, dilation, kernel, stride, strict=True)
        ]
        steps = (down * stride[0], right * stride[1], down * dilation[0], right * dilation[1])
        seen = padded.as_strided((pictures, *positions, *kernel, depth), (picture, *steps, 1))
        columns = self.columns.take(x, *seen.shape).copy_(seen)
        return columns.view(pictures, positions[0] * positions[1], -1)

    def _by_tap(self, weights: Tensor) -> Tensor:
        """Columns come channels-last, so the weights' last dimensions become (tap, channel)."""
        experts, out, cin, *_ = weights.shape
        groups = self.geometry.groups
        by_tap = weights.reshape(experts, groups, out // groups, cin, -1).transpose(3, 4)
        return by_tap.reshape(experts, groups, out // groups, -1)


class Scratch:
    """Memory that a chunk leaves to the next: fresh pages for every chunk would cost as much as its products."""

    def __init__(self) -> None:
        self.memory: Tensor | None = None

    def take(self, like: Tensor, *shape: int) -> Tensor:
        """Uninitialised numbers of this shape, in the type of `like`."""
        count = math.prod(shape)
        if self.memory is None or self.memory.numel() < count:
            self.memory = like.new_empty(count)
        return self.memory[:count].view(shape)


class ByConvolution:
    """Per-sample weight gradients as one convolution: samples become groups of one picture."""

    def __init__(self, theta: Tensor, geometry: Geometry) -> None:
        self.theta, self.geometry = theta, geometry
        self.totals = torch.zeros_like(theta)

    def add(self, expert: int, dy: Tensor, x: Tensor, mask: Tensor | None) -> Tensor:
        """As `ByProducts.add`."""
        directions = self.theta if mask is None else self.theta * mask
        experts, out, *fan_in = directions.shape
        scores = dy.new_zeros(len(dy), experts)
        samples = max(1, CHUNK // directions[0].numel())
        for start in range(0, len(dy), samples):
            some = slice(start, start + samples)
            count = len(dy[some])
            per_sample = self.geometry._replace(groups=count * self.geometry.groups)
            gradients = per_sample.weight_gradient(
                dy[some].reshape(1, count * out, *dy.shape[2:]),
                x[some].reshape(1, count * x.shape[1], *x.shape[2:]),
                dy.new_empty(1).expand(count * out, *fan_in),
            ).view(count, out, *fan_in)
            scores[some] = gradients.flatten(1) @ directions.flatten(1).T
            self.totals[expert] += gradients.sum(0)
        return scores

    def weight_gradients(self) -> Tensor:
        return self.totals
