"""Weight and gate gradients from per-sample weight gradients, of which only a bounded part exists at a time.

With G_b = wgrad(x_b, dy_b), the weight gradient of sample b alone, e the expert chosen for b and M_e the derivative of
the sign's estimator at its weights (1 for real weights), an expert convolution needs

    dTheta_e = M_e * sum of G_b over the samples of e          (the gradient of expert e's weights)
    dgate_bi = <M_e * G_b, Theta_i> for every expert i         (the gradient of the gate)

G_b is as large as the weights, so all of them together would be batch x weights: here a part is made, used for both
and overwritten. It costs as many operations as the ordinary weight gradient; the sum and the dot products add
(1 + N) / L of that on a map of L positions. The native core makes a tile in registers (`ebnet.nn.unit`). Here, for
other devices and types, a chunk of G_b = dy_b [out, L] @ columns(x_b) [L, taps * in] is made by one batched product;
columns are copied from a channels-last input in whole runs of channels, and with a 1x1 kernel there is nothing to copy.
"""

import math

import torch
from torch import Tensor

from ebnet.nn.geometry import Geometry
from ebnet.nn.samples import Samples, rows_of
from ebnet.nn.sign import Ste

CHUNK = 1 << 20
"""Most numbers in one temporary, whatever the batch (a single output channel's weights may be more)."""


def sample_gradients(
    x: Tensor, dy: Tensor, theta: Tensor, samples: Samples, geometry: Geometry, ste: Ste | None
) -> tuple[Tensor, Tensor]:
    """(dTheta, as `theta` [experts, out, in / groups, kh, kw]; dgate [batch, experts]). `ste` None: real weights."""
    products = Products(theta, geometry)
    dgate = x.new_zeros(len(x), len(theta))
    for expert, indices in samples:
        mask = derivative(theta[expert], ste)
        for rows in indices.split(rows_per_chunk(x, dy)):
            dgate.index_copy_(0, rows, products.add(expert, rows_of(dy, rows), rows_of(x, rows), mask))
    dtheta = products.weight_gradients()
    return dtheta if ste is None else ste.backward(dtheta, theta), dgate


def derivative(latent: Tensor, ste: Ste | None) -> Tensor | None:
    """That of the sign's estimator at the weights; None where it is 1 for all, as it mostly is."""
    if ste is None or (ste is Ste.CLIP and bool(latent.abs().max() <= 1)):
        return None
    return ste.backward(torch.ones_like(latent), latent)


def rows_per_chunk(x: Tensor, dy: Tensor) -> int:
    """As many samples as keep copies of them within a chunk."""
    return max(1, CHUNK // max(x.shape[1:].numel(), dy.shape[1:].numel(), 1))


class Products:
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
        positions = self.geometry.output_size(size, kernel)
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
