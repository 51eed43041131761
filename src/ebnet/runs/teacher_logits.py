"""RUN/teacher.safetensors: what a teacher from outside says about each training image."""

from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from ebnet.errors import CheckpointError
from ebnet.files import write_atomically


def write_logits(file: Path, logits: Tensor, teacher: str, side: int) -> None:
    write_atomically(file, save({"logits": logits}, metadata={"teacher": teacher, "side": str(side)}))


def read_logits(file: Path, images: int, classes: int) -> Tensor:
    """[images, classes], checked to be of a set of that size."""
    try:
        logits = load_file(file)["logits"]
    except (SafetensorError, OSError, KeyError) as error:
        raise CheckpointError(
            f"{file} is damaged ({error}); remove it, and the teacher looks at the images again"
        ) from error
    if logits.shape != (images, classes):
        raise CheckpointError(
            f"{file} holds a teacher's logits of {logits.shape[0]} images and {logits.shape[1]} classes, but the set "
            f"has {images} and {classes}; remove it, or use another --out"
        )
    return logits
