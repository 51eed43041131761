"""One image, one answer: however it is stored, whoever asks."""

import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageOps

from ebnet.data import CentreCrop
from ebnet.data.folder import FolderDataset
from ebnet.images import centred, square, upright_size, whole
from ebnet.runtime.preprocessing import Preprocessing
from ebnet.serve.picture import decode

COLOUR = Preprocessing(24, 32, 24, [0.0] * 3, [1.0] * 3, 3)


def photograph(width: int, height: int, seed: int = 0) -> Image.Image:
    """Smooth, different everywhere and without symmetry, as photographs are."""
    rough = np.random.default_rng(seed).integers(0, 256, (5, 4, 3), np.uint8)
    return Image.fromarray(rough).resize((width, height), Image.Resampling.BICUBIC)


def stored(image: Image.Image, kind: str, orientation: int | None = None) -> bytes:
    data, exif = io.BytesIO(), Image.Exif()
    if orientation:
        exif[0x0112] = orientation
    image.save(data, kind, exif=exif)
    return data.getvalue()


@given(
    st.integers(1, 8),
    st.integers(20, 90),
    st.integers(20, 90),
    st.tuples(*[st.floats(0, 1)] * 4),
    st.integers(3, 40),
)
def test_orientation_is_that_of_a_viewer(
    orientation: int, width: int, height: int, corners: tuple[float, ...], size: int
) -> None:
    """Any box of an image that is stored turned, against Pillow's own turning of the whole image first."""
    image = Image.open(io.BytesIO(stored(photograph(width, height), "PNG", orientation)))
    upright = ImageOps.exif_transpose(image)
    assert upright_size(image) == upright.size
    (x0, x1), (y0, y1) = sorted(corners[:2]), sorted(corners[2:])
    w, h = upright.size
    box = (x0 * (w - 2), y0 * (h - 2), x1 * (w - 2) + 2, y1 * (h - 2) + 2)
    expected = np.asarray(upright.resize((size, size), Image.Resampling.BILINEAR, box=box)).astype(int)
    assert np.abs(square(image, box, size, 3) - expected).max() <= 1
    assert np.array_equal(whole(image, 3), np.asarray(upright))


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_validation_predict_and_server_see_the_same_pixels(tmp_path: Path, kind: str, orientation: int) -> None:
    """Large enough for a JPEG decoder to be asked for less."""
    folder = tmp_path / "val" / "class"
    folder.mkdir(parents=True)
    file = folder / f"photo.{kind.lower()}"
    file.write_bytes(stored(photograph(300, 200), kind, orientation))
    validation = CentreCrop(24, 32).picture(FolderDataset(tmp_path, "val").open(0), np.empty(0))
    assert np.array_equal(validation, COLOUR.read(file))
    assert np.array_equal(validation, decode(file.read_bytes(), COLOUR, invert=False))
    exact = square(photograph(300, 200), centred(300, 200, 24 / 32), 24, 3)
    if orientation == 1 and kind == "PNG":
        assert np.array_equal(validation, exact)


@given(st.sampled_from(["RGBA", "LA"]), st.integers(8, 40))
@settings(max_examples=20)
def test_transparent_parts_lie_on_black(mode: str, size: int) -> None:
    """Flattened after it was resized, against flattened before."""
    image = photograph(60, 50).convert(mode)
    image.putalpha(photograph(60, 50, seed=1).convert("L"))
    layered = image.convert("RGBA")
    flat = Image.alpha_composite(Image.new("RGBA", layered.size, (0, 0, 0, 255)), layered).convert("RGB")
    expected = square(flat, (0, 0, 60, 50), size, 3).astype(int)
    assert np.abs(square(image, (0, 0, 60, 50), size, 3) - expected).max() <= 2


def test_sixteen_bits_of_grey_keep_their_upper_eight() -> None:
    deep = np.linspace(0, 65535, 32 * 32).astype(np.uint16).reshape(32, 32)
    image = Image.open(io.BytesIO(stored(Image.fromarray(deep), "PNG")))
    assert np.array_equal(square(image, (0, 0, 32, 32), 32, 1)[:, :, 0], deep >> 8)
