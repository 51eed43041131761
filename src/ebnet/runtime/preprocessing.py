"""From an image file to the network's input, with Pillow and numpy alone."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from ebnet.errors import DataError
from ebnet.images import centred, square, upright_size

if TYPE_CHECKING:
    from pathlib import Path

    from PIL import Image


@dataclass(frozen=True)
class Preprocessing:
    """The central crop / resize of the shorter side, scaled to size x size, then (x / 255 - mean) / std."""

    size: int
    resize: int
    crop: int
    mean: list[float]
    std: list[float]
    in_channels: int

    def read(self, path: "Path", invert: bool = False) -> np.ndarray:
        """An image file as uint8 [size, size, channels]; the engine itself normalises."""
        return self.decode(path, str(path), invert)

    def decode(self, file: "Path | BinaryIO", name: str, invert: bool = False) -> np.ndarray:
        """The same for an open file that is known by a name."""
        from PIL import Image, UnidentifiedImageError

        try:
            with Image.open(file) as image:
                return self.fit(image, invert)
        except FileNotFoundError:
            raise DataError(f"{name} does not exist") from None
        except UnidentifiedImageError:
            raise DataError(f"{name} is not a readable image: its format is not known") from None
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
            raise DataError(f"{name} is not a readable image: {error}") from error

    def fit(self, image: "Image.Image", invert: bool = False) -> np.ndarray:
        """An opened Pillow image as uint8 [size, size, channels]; inverted, dark and light change places."""
        box = centred(*upright_size(image), self.crop / self.resize)
        pixels = square(image, box, self.size, self.in_channels)
        return 255 - pixels if invert else pixels
