"""From an image file to the network's input, with Pillow and numpy alone."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ebnet.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

    from PIL import Image

MODES = {1: "L", 3: "RGB", 4: "RGBA"}


@dataclass(frozen=True)
class Preprocessing:
    """The central crop / resize of the shorter side, scaled to size x size, then (x / 255 - mean) / std."""

    size: int
    resize: int
    crop: int
    mean: list[float]
    std: list[float]
    in_channels: int

    def read(self, path: "Path") -> np.ndarray:
        """An image file as uint8 [size, size, channels]; the engine itself normalises."""
        from PIL import Image, UnidentifiedImageError

        try:
            with Image.open(path) as image:
                return self.fit(image)
        except FileNotFoundError:
            raise DataError(f"{path} does not exist") from None
        except (UnidentifiedImageError, OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
            raise DataError(f"{path} is not a readable image: {error}") from error

    def fit(self, image: "Image.Image") -> np.ndarray:
        """An opened Pillow image as uint8 [size, size, channels]."""
        from PIL import Image

        mode = MODES.get(self.in_channels)
        if mode is None:
            raise DataError(f"images have 1, 3 or 4 channels, the network wants {self.in_channels}")
        resized = image.convert(mode).resize((self.size, self.size), Image.Resampling.BILINEAR, self._box(*image.size))
        pixels = np.asarray(resized)
        return pixels[:, :, None] if pixels.ndim == 2 else pixels

    def _box(self, width: int, height: int) -> tuple[float, float, float, float]:
        side = min(width, height) * self.crop / self.resize
        left, top = (width - side) / 2, (height - side) / 2
        return left, top, left + side, top + side
