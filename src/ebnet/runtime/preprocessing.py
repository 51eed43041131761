"""From an image file to the network's input, with Pillow and numpy alone."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ebnet.errors import DataError

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

    def read(self, path: Path) -> np.ndarray:
        """An image file as uint8 [size, size, channels]; the engine itself normalises."""
        from PIL import Image, UnidentifiedImageError

        mode = MODES.get(self.in_channels)
        if mode is None:
            raise DataError(f"{path}: image files have 1, 3 or 4 channels, the network wants {self.in_channels}")
        try:
            with Image.open(path) as image:
                converted = image.convert(mode)
        except FileNotFoundError:
            raise DataError(f"{path} does not exist") from None
        except (UnidentifiedImageError, OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
            raise DataError(f"{path} is not a readable image: {error}") from error
        resized = converted.resize((self.size, self.size), Image.Resampling.BILINEAR, box=self._box(*converted.size))
        pixels = np.asarray(resized)
        return pixels[:, :, None] if pixels.ndim == 2 else pixels

    def _box(self, width: int, height: int) -> tuple[float, float, float, float]:
        side = min(width, height) * self.crop / self.resize
        left, top = (width - side) / 2, (height - side) / 2
        return left, top, left + side, top + side
