"""Uploaded bytes to the network's input; whatever a stranger may send, the answer is an image or a clear refusal."""

import io
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from PIL import Image

from ebnet.runtime.preprocessing import Preprocessing
from ebnet.serve.refusal import Refused

MAX_BYTES = 8 << 20
MAX_PIXELS = 40_000_000
"""Checked against the header, before anything is decoded: a small file can claim to be enormous."""

FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF")
"""Pillow knows many more, some with decoders of doubtful age."""


def decode(content: bytes, preprocessing: Preprocessing, invert: bool, until: float = float("inf")) -> np.ndarray:
    """Bytes of an image file as uint8 [size, size, channels].

    Args:
        invert: swap dark and light, for ink on paper where the network knows light on dark.
        until: the moment (`time.monotonic`) after which decoding is given up.
    """
    with _opened(content, until) as image:
        return preprocessing.fit(image, invert)


def memory_to_decode(content: bytes) -> int:
    """An upper limit of the bytes that `decode` takes, from the header alone.

    Measured peaks of `ebnet.images.square` per pixel: 4.9 for opaque PNG and BMP, 8.3 with transparency, 12.3 for grey
    with transparency, 16.2 for WebP, whose decoder holds the image twice; a progressive JPEG's decoder holds all
    coefficients, 6 bytes, beside the pixels.
    """
    with _opened(content) as image:
        width, height = image.size
        if image.format == "WEBP":
            a_pixel = 17
        elif image.mode in ("LA", "PA") or "transparency" in image.info:
            a_pixel = 13
        else:
            a_pixel = 10 if image.format == "JPEG" or image.mode == "RGBA" else 7
        return a_pixel * width * height


# Pillow's warning of large images would only repeat what MAX_PIXELS refuses.
warnings.simplefilter("ignore", Image.DecompressionBombWarning)


class _Patience(io.BytesIO):
    """A file that ends its reader when time is up: Pillow decodes block by block and cannot be stopped otherwise."""

    def __init__(self, content: bytes, until: float) -> None:
        super().__init__(content)
        self.until = until

    def read(self, size: int | None = -1, /) -> bytes:
        if time.monotonic() > self.until:
            raise Refused(503, "decoding was given up: it took too long")
        return super().read(size)


@contextmanager
def _opened(content: bytes, until: float = float("inf")) -> Iterator[Image.Image]:
    """The image with its header read and its size checked; whatever Pillow raises becomes a refusal."""
    if not content:
        raise Refused(400, "the request has no body; send the bytes of an image")
    try:
        with Image.open(_Patience(content, until), formats=FORMATS) as image:
            width, height = image.size
            if width * height > MAX_PIXELS:
                raise Refused(413, f"the image has {width} x {height} pixels, more than {MAX_PIXELS:,}")
            yield image
    except Image.DecompressionBombError:
        raise Refused(413, f"the image has more than {MAX_PIXELS:,} pixels") from None
    except Image.UnidentifiedImageError:
        raise Refused(415, f"this is not an image; {', '.join(FORMATS)} are understood") from None
    except (OSError, ValueError, SyntaxError, EOFError, MemoryError, ArithmeticError, LookupError) as error:
        raise Refused(400, f"the image is damaged: {str(error)[:200] or type(error).__name__}") from None
