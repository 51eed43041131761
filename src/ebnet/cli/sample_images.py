"""Some images for a command to try a network on: of a directory, or of a run's validation set."""

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape

if TYPE_CHECKING:
    import numpy as np

    from ebnet.runtime.preprocessing import Preprocessing

IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".webp")


def folder_images(rules: "Preprocessing", data: Path, count: int) -> "np.ndarray":
    """Normalised NCHW float32 images, spread over the directory so that all of its classes are seen."""
    import numpy as np

    from ebnet.errors import DataError

    files = sorted(path for path in data.rglob("*") if path.suffix.lower() in IMAGES)
    if not files:
        raise DataError(f"{data} holds no images ({', '.join(IMAGES)})")
    chosen = files[:: max(1, len(files) // count)][:count]
    pixels = np.stack([rules.read(path) for path in chosen]).astype(np.float32) / 255
    mean, std = np.asarray(rules.mean, np.float32), np.asarray(rules.std, np.float32)
    return np.ascontiguousarray(((pixels - mean) / std).transpose(0, 3, 1, 2))


def validation_images(run: Path, count: int) -> "np.ndarray | None":
    """Of the data set that the run's recipe names, where there is a recipe and the data are here."""
    from ebnet.errors import EbnetError

    if not (run / "recipe.toml").is_file():
        return None
    from ebnet.recipe.settings import load_recipe
    from ebnet.train.pictures import Pictures

    try:
        pictures = Pictures.open(load_recipe(run / "recipe.toml").data)
        images, _ = pictures.sample(pictures.val, count)
        return pictures.normalise.tensor(images).numpy()
    except EbnetError as error:
        Console(stderr=True).print(f"no validation images: {escape(str(error))}", highlight=False)
        return None
