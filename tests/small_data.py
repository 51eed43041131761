"""Data sets in small, in the layouts that users bring: photographs in class directories, shards, idx files."""

import io
import struct
import tarfile
from pathlib import Path

import numpy as np
from PIL import Image


def photo(number: int) -> bytes:
    """The JPEG of a smooth picture that is different for each number, and of a different size for some."""
    height, width = 40 + number % 3 * 8, 48
    y, x = np.mgrid[0:height, 0:width]
    pixels = np.stack([(x * 5 + number * 37) % 256, (y * 5) % 256, (x + y + number * 11) % 256], axis=-1)
    out = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(out, "JPEG", quality=95)
    return out.getvalue()


def write_photographs(root: Path) -> Path:
    """ImageNet's layout: classes ant, bee, cat; 6 pictures each for training, 2 for validation."""
    for split, count in (("train", 6), ("val", 2)):
        for c, name in enumerate(("ant", "bee", "cat")):
            directory = root / split / name
            directory.mkdir(parents=True)
            for i in range(count):
                (directory / f"{name}_{i}.jpg").write_bytes(photo(10 * c + i))
    return root


def write_shard(path: Path, members: list[tuple[str, bytes]]) -> None:
    """A tar file of these members, in this order."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as archive:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


def write_shards(root: Path) -> Path:
    """Four train shards of 8 pictures, one val shard of 4; the class is the picture's number modulo 5."""
    for split, numbers in (("train", range(32)), ("val", range(4))):
        for first in range(0, len(numbers), 8):
            members = []
            for n in numbers[first : first + 8]:
                members += [(f"x/{n:04}.jpg", photo(n)), (f"x/{n:04}.cls", str(n % 5).encode())]
            write_shard(root / split / f"{first:03}.tar", members)
    return root


def idx(array: np.ndarray) -> bytes:
    """An array of bytes as MNIST's kind of file."""
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()
