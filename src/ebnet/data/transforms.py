"""From a stored picture to the square the network sees: crops, flips, normalisation.

A transform draws nothing itself: it is handed `draws` uniform numbers for each picture (see `randomness`) and is a pure
function of them. `picture` takes one Pillow image, as worker processes decode them; `batch` takes a whole array of
equally sized pictures, as sets in memory have them. Both give the same pixels.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ebnet.errors import ConfigError, ShapeError
from ebnet.images import Box, centred, channels_of, square, upright_size

try:
    from ebnet._native import train as kernels
except ImportError:  # a source tree without a build
    kernels = None  # type: ignore[assignment]

if TYPE_CHECKING:
    import torch

Images = NDArray[np.uint8]
Uniforms = NDArray[np.float64]
_ATTEMPTS = 10  # of the random resized crop, as everyone's does


class Transform(ABC):
    """Pictures of any size to pictures of `size` x `size`."""

    size: int
    draws: int
    """How many uniform numbers one picture takes."""

    @abstractmethod
    def picture(self, image: Image.Image, uniforms: Uniforms) -> Images:
        """One Pillow image and [draws] numbers to [size, size, channels]."""

    @abstractmethod
    def batch(self, images: Images, uniforms: Uniforms) -> Images:
        """[count, height, width, channels] and [count, draws] numbers to [count, size, size, channels]."""

    def chosen(self, images: Images, indices: NDArray[np.int64], uniforms: Uniforms) -> Images:
        """`batch` of the images at `indices`."""
        return self.batch(images[indices], uniforms)


@dataclass(frozen=True)
class CentreCrop(Transform):
    """Test time: the shorter side to `resize` pixels, then the centred square of `size` (the paper: 256, 224).

    Both happen in one resampling of the box that survives. Without `resize` the largest centred square is kept.
    """

    size: int
    resize: int | None = None
    draws = 0

    def __post_init__(self) -> None:
        if self.resize is not None and self.resize < self.size:
            raise ConfigError(f"resize={self.resize} is smaller than size={self.size}: a crop cannot be larger")

    def _box(self, width: int, height: int) -> Box:
        return centred(width, height, self.size / self.resize if self.resize else 1.0)

    def picture(self, image: Image.Image, uniforms: Uniforms) -> Images:
        return square(image, self._box(*upright_size(image)), self.size, channels_of(image))

    def batch(self, images: Images, uniforms: Uniforms) -> Images:
        height, width = images.shape[1:3]
        box = self._box(width, height)
        if box == (0, 0, self.size, self.size) and width == height == self.size:
            return images
        return _resample_each(images, np.broadcast_to(np.array(box), (len(images), 4)), self.size)


@dataclass(frozen=True)
class RandomResizedCrop(Transform):
    """Training on photographs: a box of random area and shape, resized to `size`, flipped half of the time.

    The box has `scale` of the picture's area and a width/height in `ratio` (log-uniform), at a uniform place. If ten
    boxes in a row stick out of the picture, the largest centred one of an allowed shape is taken.
    """

    size: int
    scale: tuple[float, float] = (0.08, 1.0)
    ratio: tuple[float, float] = (3 / 4, 4 / 3)
    flip: bool = True
    draws = 2 * _ATTEMPTS + 3

    def __post_init__(self) -> None:
        if not 0 < self.scale[0] <= self.scale[1] <= 1:
            raise ConfigError(f"scale={self.scale} must be (low, high) with 0 < low <= high <= 1")
        if not 0 < self.ratio[0] <= self.ratio[1]:
            raise ConfigError(f"ratio={self.ratio} must be (low, high) with 0 < low <= high")

    def boxes(self, width: int, height: int, uniforms: Uniforms) -> NDArray[np.float64]:
        """[count, 4] boxes (left, top, right, bottom), in pixels of a picture of this size."""
        count = len(uniforms)
        area = width * height * (self.scale[0] + (self.scale[1] - self.scale[0]) * uniforms[:, :_ATTEMPTS])
        low, high = np.log(self.ratio)
        shape = np.exp(low + (high - low) * uniforms[:, _ATTEMPTS : 2 * _ATTEMPTS])
        widths, heights = np.sqrt(area * shape), np.sqrt(area / shape)
        fits = (widths <= width) & (heights <= height)
        first, rows = np.argmax(fits, axis=1), np.arange(count)
        found = fits[rows, first]
        shape_of_picture = np.clip(width / height, *self.ratio)
        w = np.where(found, widths[rows, first], min(width, height * shape_of_picture))
        h = np.where(found, heights[rows, first], min(height, width / shape_of_picture))
        left = np.where(found, uniforms[:, -3], 0.5) * (width - w)
        top = np.where(found, uniforms[:, -2], 0.5) * (height - h)
        # Rounding may carry the far edge a hair outside, which Pillow refuses.
        return np.stack([left, top, np.minimum(left + w, width), np.minimum(top + h, height)], axis=1)

    def picture(self, image: Image.Image, uniforms: Uniforms) -> Images:
        box = self.boxes(*upright_size(image), uniforms[None])[0]
        pixels = square(image, tuple(box.tolist()), self.size, channels_of(image))
        return _flip(pixels[None], uniforms[None], self.flip)[0]

    def batch(self, images: Images, uniforms: Uniforms) -> Images:
        height, width = images.shape[1:3]
        return _flip(_resample_each(images, self.boxes(width, height, uniforms), self.size), uniforms, self.flip)

    def chosen(self, images: Images, indices: NDArray[np.int64], uniforms: Uniforms) -> Images:
        """The same pixels in one native call, for grey and colour images.

        Images taller than wide are left to Pillow: of those it may resize the columns before the rows, and rounds
        between the two.
        """
        height, width, channels = images.shape[1:]
        if kernels is None or channels not in (1, 3) or height > width or not images.flags.c_contiguous:
            return super().chosen(images, indices, uniforms)
        boxes = self.boxes(width, height, uniforms).astype(np.float32)
        out = np.empty((len(indices), self.size, self.size, channels), np.uint8)
        kernels.resize(images, indices, boxes, _mirrored(uniforms, self.flip), out, 1)
        return out


@dataclass(frozen=True)
class PadCrop(Transform):
    """Training on small pictures: `padding` black pixels all round, a random `size` square of it, perhaps flipped.

    Pictures of another size are first brought to `size` as at test time. Turn `flip` off where left and right matter,
    as for digits.
    """

    size: int
    padding: int = 4
    flip: bool = True
    draws = 3

    def __post_init__(self) -> None:
        if self.padding < 0:
            raise ConfigError(f"padding={self.padding} must not be negative")

    def picture(self, image: Image.Image, uniforms: Uniforms) -> Images:
        square = CentreCrop(self.size).picture(image, uniforms[:0])
        return self.batch(square[None], uniforms[None])[0]

    def batch(self, images: Images, uniforms: Uniforms) -> Images:
        images = CentreCrop(self.size).batch(images, uniforms[:, :0])
        pad = self.padding
        padded = np.pad(images, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (self.size, self.size), axis=(1, 2))
        top, left = (uniforms[:, :2].T * (2 * pad + 1)).astype(np.int64)
        crops = windows[np.arange(len(images)), top, left]  # [count, channels, size, size]
        return _flip(np.ascontiguousarray(crops.transpose(0, 2, 3, 1)), uniforms, self.flip)

    def chosen(self, images: Images, indices: NDArray[np.int64], uniforms: Uniforms) -> Images:
        """The same pixels in one native call, for images that have their size already."""
        if kernels is None or images.shape[1:3] != (self.size, self.size) or not images.flags.c_contiguous:
            return super().chosen(images, indices, uniforms)
        corners = (uniforms[:, :2] * (2 * self.padding + 1)).astype(np.int64)
        out = np.empty((len(indices), *images.shape[1:]), np.uint8)
        kernels.crop(images, indices, corners, _mirrored(uniforms, self.flip), self.padding, out, 1)
        return out


@dataclass(frozen=True)
class Normalise:
    """Pixels in 0..255 to (pixel / 255 - mean) / std, channel by channel."""

    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.mean) != len(self.std) or not all(s > 0 for s in self.std):
            raise ConfigError(f"mean={self.mean} and std={self.std} must be as long as each other, and std positive")

    def array(self, images: Images) -> NDArray[np.float32]:
        """uint8 [..., height, width, channels] to float32 [..., channels, height, width]."""
        self._check(images.shape[-1])
        mean, std = np.array(self.mean, np.float32), np.array(self.std, np.float32)
        scaled = (images.astype(np.float32) / np.float32(255) - mean) / std
        return np.ascontiguousarray(np.moveaxis(scaled, -1, -3))

    def tensor(self, images: "torch.Tensor", channels_last: bool = False) -> "torch.Tensor":
        """The same for a torch tensor uint8 [count, height, width, channels] on any device."""
        import torch

        self._check(images.shape[-1])
        if kernels is not None and images.device.type == "cpu" and images.is_contiguous() and not channels_last:
            out = torch.empty(len(images), images.shape[-1], *images.shape[1:3])
            kernels.normalise(images.numpy(), self._table, out.numpy(), torch.get_num_threads())
            return out
        form = torch.channels_last if channels_last else torch.contiguous_format
        pixels = images.permute(0, 3, 1, 2).to(torch.float32, memory_format=form)
        mean = torch.tensor(self.mean, device=images.device).view(-1, 1, 1)
        std = torch.tensor(self.std, device=images.device).view(-1, 1, 1)
        return pixels.div_(255).sub_(mean).div_(std)

    @cached_property
    def _table(self) -> NDArray[np.float32]:
        """[channels, 256]: what becomes of each pixel value, in the arithmetic of `array`."""
        return self.array(np.arange(256, dtype=np.uint8)[:, None, None].repeat(len(self.mean), 2))[:, :, 0].copy()

    def _check(self, channels: int) -> None:
        if channels != len(self.mean):
            raise ShapeError(f"images have {channels} channels, the mean {self.mean} has {len(self.mean)}")

    def to_dict(self) -> dict[str, Any]:
        return {"mean": list(self.mean), "std": list(self.std)}


def as_picture(pixels: Images) -> Image.Image:
    """A Pillow image of [height, width, channels] pixels."""
    return Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)


def _resample_each(images: Images, boxes: NDArray[np.float64], size: int) -> Images:
    out = np.empty((len(images), size, size, images.shape[3]), np.uint8)
    for i, (pixels, box) in enumerate(zip(images, boxes.tolist(), strict=True)):
        out[i] = square(as_picture(pixels), tuple(box), size, images.shape[3])
    return out


def _mirrored(uniforms: Uniforms, allowed: bool) -> NDArray[np.uint8]:
    """Which pictures are mirrored: those whose last number is below one half."""
    return ((uniforms[:, -1] < 0.5) & allowed).astype(np.uint8)


def _flip(images: Images, uniforms: Uniforms, allowed: bool) -> Images:
    if not allowed:
        return images
    mirrored = np.flatnonzero(_mirrored(uniforms, allowed))
    out = images.copy()
    out[mirrored] = images[mirrored, :, ::-1]
    return out
