"""Uploaded bytes to the network's input; whatever a stranger may send, the answer is a picture or a clear refusal."""

import io
import warnings

import numpy as np
from PIL import Image, ImageOps

from ebnet.runtime.preprocessing import Preprocessing

MAX_BYTES = 8 << 20
MAX_PIXELS = 40_000_000
"""Checked against the header, before anything is decoded: a small file can claim to be enormous."""

FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF")
"""Pillow knows many more, some with decoders of doubtful age."""


class Refused(Exception):
    """A request that is not answered, with the HTTP status and the reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


def decode(content: bytes, preprocessing: Preprocessing, invert: bool) -> np.ndarray:
    """Bytes of an image file as uint8 [size, size, channels].

    Args:
        invert: swap dark and light, for ink on paper where the network knows light on dark.
    """
    if not content:
        raise Refused(400, "the request has no body; send the bytes of an image")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(content), formats=FORMATS) as image:
                _check_size(*image.size)
                picture = _flat(ImageOps.exif_transpose(image))
                return preprocessing.fit(ImageOps.invert(picture) if invert else picture)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise Refused(413, f"the image has more than {MAX_PIXELS:,} pixels") from None
    except Image.UnidentifiedImageError:
        raise Refused(415, f"this is not an image; {', '.join(FORMATS)} are understood") from None
    except (OSError, ValueError, SyntaxError, EOFError, MemoryError, ArithmeticError, LookupError) as error:
        raise Refused(400, f"the image is damaged: {str(error)[:200] or type(error).__name__}") from None


def _check_size(width: int, height: int) -> None:
    if width * height > MAX_PIXELS:
        raise Refused(413, f"the image has {width} x {height} pixels, more than {MAX_PIXELS:,}")


def _flat(image: Image.Image) -> Image.Image:
    """On a black ground where it is transparent, because a transparent pixel's colour is arbitrary."""
    if image.mode not in ("RGBA", "LA", "PA") and "transparency" not in image.info:
        return image.convert("L" if image.mode in ("1", "L", "I", "I;16", "F") else "RGB")
    layered = image.convert("RGBA")
    ground = Image.new("RGBA", layered.size, (0, 0, 0, 255))
    return Image.alpha_composite(ground, layered).convert("RGB")
