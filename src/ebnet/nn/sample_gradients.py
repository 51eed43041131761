"""Weight and gate gradients from per-sample weight gradients, of which only a bounded chunk exists at a time.

With G_b = wgrad(x_b, dy_b), the weight gradient of sample b alone, an expert's samples need

    total   = sum over b of G_b                 (the gradient of the chosen expert's weights)
    scores  = <G_b, D_i>  for every expert i    (the gradient of the gate, D the experts' weights)

G_b is as large as the weights, so all of them together would be batch x weights: here a chunk is made, used for both
and dropped. A chunk costs as many operations as the ordinary weight gradient of its samples; the sum and the dot
products add (1 + N) / L of that on a map of L positions. Two ways to make one:

    products:     G_b = dy_b [out, L] @ columns(x_b) [L, taps * in]. Columns are copied from a channels-last input in
                  whole runs of channels; with a 1x1 kernel there is nothing to copy. Best on small maps, where a
                  convolution would spend its time on reordering weights.
    convolution:  one weight-gradient convolution with (samples * groups) groups. Best where columns would be large.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from ebnet.nn.geometry import Geometry

CHUNK = 1 << 21
"""Most numbers in one temporary, whatever the batch (a single sample's weights may be more)."""


def accumulate_gradients(dy: Tensor, x: Tensor, directions: Tensor, geometry: Geometry, total: Tensor) -> Tensor:
    """Add the samples' weight gradients to `total` and return their scores [batch, experts].

    Args:
        directions: [experts, out, in / groups, kh, kw]; one score per sample and direction.
        total: [out, in / groups, kh, kw], added to in place.
    """
    if _products_are_faster(dy, directions, geometry):
        return _by_products(dy, x, directions, geometry, total)
    return _by_convolution(dy, x, directions, geometry, total)


def _products_are_faster(dy: Tensor, directions: Tensor, geometry: Geometry) -> bool:
    positions, taps = dy[0, 0].numel(), directions[0, 0, 0].numel()
    return taps == 1 or positions <= 64 or (geometry.groups == 1 and positions <= 256)


def _by_products(dy: Tensor, x: Tensor, directions: Tensor, geometry: Geometry, total: Tensor) -> Tensor:
    experts, out, cin, *kernel = directions.shape
    groups, taps = geometry.groups, kernel[0] * kernel[1]
    rows, fan_in = out // groups, cin * taps
    # Columns are channels-last, so the weights' last dimensions are (tap, channel) here.
    by_tap = directions.reshape(experts, groups, rows, cin, taps).transpose(3, 4).reshape(experts, groups, rows, fan_in)
    total_by_tap = torch.zeros_like(by_tap[0])
    scores = dy.new_zeros(len(dy), experts)
    dy = dy.reshape(len(dy), groups, rows, -1)
    samples = max(1, CHUNK // (groups * fan_in * dy.shape[3]))
    for start in range(0, len(dy), samples):
        some = slice(start, start + samples)
        columns = _columns(x[some], (kernel[0], kernel[1]), geometry)
        tile = max(1, CHUNK // (len(columns) * groups * fan_in))
        for first in range(0, rows, tile):
            outs = slice(first, first + tile)
            gradients = torch.matmul(dy[some, :, outs], columns)
            scores[some] += gradients.flatten(1) @ by_tap[:, :, outs].flatten(1).T
            total_by_tap[:, outs] += gradients.sum(0)
    total += total_by_tap.view(out, taps, cin).transpose(1, 2).reshape(total.shape)
    return scores


def _columns(x: Tensor, kernel: tuple[int, int], geometry: Geometry) -> Tensor:
    """What each output position sees: [samples, groups, positions, taps * channels of a group]."""
    samples, channels, height, width = x.shape
    stride, padding, dilation, groups = geometry
    if kernel == (1, 1) and padding == (0, 0):
        x = x[:, :, :: stride[0], :: stride[1]]
        return x.reshape(samples, groups, channels // groups, -1).transpose(2, 3)
    padded = F.pad(x.permute(0, 2, 3, 1), (0, 0, padding[1], padding[1], padding[0], padding[0])).contiguous()
    across, down, right, _ = padded.stride()
    positions = [
        (size + 2 * p - d * (k - 1) - 1) // s + 1
        for size, p, d, k, s in zip((height, width), padding, dilation, kernel, stride, strict=True)
    ]
    seen = padded.as_strided(
        (samples, groups, *positions, *kernel, channels // groups),
        (
            across,
            channels // groups,
            down * stride[0],
            right * stride[1],
            down * dilation[0],
            right * dilation[1],
            1,
        ),
    )
    return seen.reshape(samples, groups, positions[0] * positions[1], -1)


def _by_convolution(dy: Tensor, x: Tensor, directions: Tensor, geometry: Geometry, total: Tensor) -> Tensor:
    experts, out, cin, *kernel = directions.shape
    scores = dy.new_zeros(len(dy), experts)
    samples = max(1, CHUNK // total.numel())
    for start in range(0, len(dy), samples):
        some = slice(start, start + samples)
        count = len(dy[some])
        # Samples become groups of one picture, so that their gradients stay apart.
        per_sample = geometry._replace(groups=count * geometry.groups)
        gradients = per_sample.weight_gradient(
            dy[some].reshape(1, count * out, *dy.shape[2:]),
            x[some].reshape(1, count * x.shape[1], *x.shape[2:]),
            total.new_empty(1).expand(count * out, cin, *kernel),
        ).view(count, out, cin, *kernel)
        scores[some] = gradients.flatten(1) @ directions.flatten(1).T
        total += gradients.sum(0)
    return scores
