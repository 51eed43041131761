"""Uploads: good ones come through unchanged, bad ones get their own refusal."""

import io
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from ebnet.runtime.preprocessing import Preprocessing
from ebnet.serve.picture import MAX_PIXELS, decode
from ebnet.serve.refusal import Refused

GREY = Preprocessing(28, 28, 28, [0.0], [1.0], 1)
COLOUR = Preprocessing(32, 32, 32, [0.0] * 3, [1.0] * 3, 3)
PIXELS = np.random.default_rng(0).integers(0, 256, (28, 28), np.uint8)


def encoded(image: Image.Image, kind: str = "PNG", **options: object) -> bytes:
    data = io.BytesIO()
    image.save(data, kind, **options)
    return data.getvalue()


def claiming(width: int, height: int) -> bytes:
    """A PNG of a few bytes whose header claims a size."""
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(b"\0" * 100)), (b"IEND", b"")]
    body = b"".join(struct.pack(">I", len(d)) + n + d + struct.pack(">I", zlib.crc32(n + d)) for n, d in chunks)
    return b"\x89PNG\r\n\x1a\n" + body


def test_pixels_arrive_unchanged() -> None:
    assert (decode(encoded(Image.fromarray(PIXELS)), GREY, invert=False)[:, :, 0] == PIXELS).all()
    assert (decode(encoded(Image.fromarray(PIXELS)), GREY, invert=True)[:, :, 0] == 255 - PIXELS).all()


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16", "YCbCr"])
@pytest.mark.parametrize("wanted", [GREY, COLOUR])
@pytest.mark.parametrize("invert", [False, True])
def test_every_mode_fits_every_network(mode: str, wanted: Preprocessing, invert: bool) -> None:
    kind = "TIFF" if mode == "I;16" else "JPEG" if mode in ("CMYK", "YCbCr") else "PNG"
    image = Image.new(mode, (40, 30)) if mode == "I;16" else Image.new("RGB", (40, 30), "red").convert(mode)
    data = encoded(image, "PNG" if kind == "TIFF" else kind)
    assert decode(data, wanted, invert).shape == (wanted.size, wanted.size, wanted.in_channels)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "BMP", "GIF"])
def test_every_format(kind: str) -> None:
    assert decode(encoded(Image.new("RGB", (50, 40), "white"), kind), GREY, invert=False).min() > 240


def test_transparent_is_black() -> None:
    assert decode(encoded(Image.new("RGBA", (28, 28), (255, 255, 255, 0))), GREY, invert=False).max() == 0


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"", 400),
        (b"hello", 415),
        (b"\xff\xd8\xff\xe0" + b"0" * 20, 400),
        (encoded(Image.fromarray(PIXELS))[:200], 400),
        (encoded(Image.new("RGB", (8, 8)), "TIFF"), 415),
        (encoded(Image.new("L", (8, 8)), "PPM"), 415),
        (claiming(10_000, 10_000), 413),
        (claiming(60_000, 60_000), 413),
        (claiming(MAX_PIXELS, 2), 413),
        (claiming(2**31 - 1, 1), 413),
        (claiming(0, 5), 415),
    ],
    ids=["empty", "text", "broken jpeg", "truncated", "tiff", "ppm", "large", "bomb", "long", "longest", "no width"],
)
def test_refusals(content: bytes, status: int) -> None:
    with pytest.raises(Refused) as refused:
        decode(content, GREY, invert=False)
    assert refused.value.status == status
    assert len(refused.value.reason) < 300


@given(st.data())
def test_damage_is_refused_or_decoded_never_more(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(["PNG", "JPEG", "WEBP", "GIF", "BMP"]))
    content = bytearray(encoded(Image.fromarray(PIXELS).convert("RGB"), kind))
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(content[: data.draw(st.integers(1, len(content)))])
    try:
        outcome: object = decode(cut, GREY, invert=False).shape
    except Refused as refused:
        outcome = refused.status
    assert outcome in ((28, 28, 1), 400, 413, 415)
