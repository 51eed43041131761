"""One image, one answer: how a stored image becomes the square a network sees.

Training, validation, `predict` and the server all come through `square`. The image is read as late and as small as
possible: rotated (EXIF), flattened and converted only after it was resized, so that a photograph is held in memory
once, and a JPEG decoder is asked for no more than the size that is needed.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ebnet.errors import DataError

if TYPE_CHECKING:
    from PIL import Image

MODES = {1: "L", 3: "RGB", 4: "RGBA"}
"""Pillow's mode for a network of so many input channels."""

_GREY = ("1", "L", "I", "F")
_ORIENTATION = 0x0112


class Box(NamedTuple):
    """A part of an image, in pixels from its upper left corner; fractions are meant."""

    left: float
    top: float
    right: float
    bottom: float


def upright_size(image: "Image.Image") -> tuple[int, int]:
    """Width and height as a viewer shows the image, whatever way the camera was held."""
    width, height = image.size
    return (height, width) if _orientation(image) >= 5 else (width, height)


def square(image: "Image.Image", box: tuple[float, float, float, float], size: int, channels: int) -> NDArray[np.uint8]:
    """The box (of the upright image) resized to [size, size, channels], transparent parts on black."""
    from PIL import Image

    if channels not in MODES:
        raise DataError(f"images have 1, 3 or 4 channels, the network wants {channels}")
    orientation = _orientation(image)
    stored = _stored(Box(*box), upright_size(image), orientation)
    stored = _reduced(image, stored, size)
    small = _plain(image)
    if not (stored == (0, 0, size, size) and image.size == (size, size)):
        small = small.resize((size, size), Image.Resampling.BILINEAR, box=stored)
    if orientation > 1:
        small = small.transpose(Image.Transpose(_TURNS[orientation]))
    return _with_channels(small, channels)


def whole(image: "Image.Image", channels: int) -> NDArray[np.uint8]:
    """All pixels of the upright image, [height, width, channels]."""
    from PIL import ImageOps

    return _with_channels(_plain(ImageOps.exif_transpose(image)), channels)


def channels_of(image: "Image.Image") -> int:
    """One channel for grey images, else three; the header knows, nothing is decoded."""
    return 1 if image.mode in _GREY or image.mode.startswith("I;16") else 3


def centred(width: int, height: int, share: float) -> Box:
    """The centred square whose side is `share` of the shorter side."""
    side = min(width, height) * share
    left, top = (width - side) / 2, (height - side) / 2
    return Box(left, top, left + side, top + side)


# EXIF's orientations 2..8 as Pillow's transpositions (`Image.Transpose`): mirror, half turn, flip, transpose, quarter
# turns and transverse.
_TURNS = (-1, -1, 0, 3, 1, 5, 4, 6, 2)


def _orientation(image: "Image.Image") -> int:
    value = image.getexif().get(_ORIENTATION, 1)
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


def _stored(box: Box, upright: tuple[int, int], orientation: int) -> Box:
    """Where a box of the upright image lies in the image as it is stored.

    From orientation 5 on rows and columns are exchanged; the other orientations, and these after the exchange, only
    count a side from its other end.
    """
    (width, height), (left, top, right, bottom) = upright, box
    if orientation in (2, 3, 6, 7):
        left, right = width - right, width - left
    if orientation in (3, 4, 7, 8):
        top, bottom = height - bottom, height - top
    return Box(top, left, bottom, right) if orientation >= 5 else Box(left, top, right, bottom)


def _reduced(image: "Image.Image", box: Box, size: int) -> Box:
    """Ask a JPEG decoder to leave out the finest frequencies that are not needed; the box in what it then gives."""
    width, height = image.size
    shrink = int(min(box.right - box.left, box.bottom - box.top) / size)
    if shrink < 2:
        return box
    image.draft(image.mode, (width // shrink, height // shrink))
    x, y = image.size[0] / width, image.size[1] / height
    return Box(box.left * x, box.top * y, min(box.right * x, image.size[0]), min(box.bottom * y, image.size[1]))


def _plain(image: "Image.Image") -> "Image.Image":
    """In a mode that can be resized: grey, colour, or colour with transparency."""
    from PIL import Image

    if image.mode.startswith("I;16"):  # Pillow clips sixteen bits at 255 instead of taking the upper eight
        return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    transparent = image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info
    wanted = "RGBA" if transparent else "L" if image.mode in _GREY else "RGB"
    return image if image.mode == wanted else image.convert(wanted)


def _with_channels(image: "Image.Image", channels: int) -> NDArray[np.uint8]:
    from PIL import Image

    if image.mode == "RGBA" and channels != 4:
        image = Image.alpha_composite(Image.new("RGBA", image.size, (0, 0, 0, 255)), image)
    pixels = np.asarray(image.convert(MODES[channels]))
    return pixels[:, :, None] if pixels.ndim == 2 else pixels
