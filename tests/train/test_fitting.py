"""`ebnet train images`: sizes from the images themselves."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ebnet.recipe.settings import load_recipe
from ebnet.train.fitting import fitted


def write_images(root: Path, sizes: list[tuple[int, int]]) -> Path:
    for split in ("train", "val"):
        for number, size in enumerate(sizes):
            folder = root / split / f"class{number % 2}"
            folder.mkdir(parents=True, exist_ok=True)
            Image.fromarray(np.zeros((size[1], size[0], 3), np.uint8)).save(folder / f"{number}.png")
    return root


@pytest.mark.parametrize(
    ("sizes", "limit", "size", "stem"),
    [
        ([(300, 200)] * 20, 128, 128, "imagenet"),
        ([(300, 100)] * 20, 128, 96, "imagenet"),
        ([(100, 300)] * 9 + [(40, 40)] * 11, 128, 32, "cifar"),
        ([(28, 28)] * 20, 128, 32, "cifar"),
        ([(300, 200)] * 20, 64, 64, "imagenet"),
    ],
)
def test_the_images_choose(tmp_path: Path, sizes: list[tuple[int, int]], limit: int, size: int, stem: str) -> None:
    root = write_images(tmp_path, sizes)
    recipe = fitted(load_recipe("images", {"data.root": str(root), "data.size": limit}))
    assert (recipe.data.size, recipe.data.resize, recipe.network.stem) == (size, size + size // 8, stem)
    assert recipe.data.in_memory
    assert recipe.data.memory_side == recipe.data.resize
    assert recipe.schedule.batch_size == 2
    assert fitted(recipe) == recipe


def test_nobody_teaches_where_the_recipe_says_none() -> None:
    recipe = load_recipe("images", ["stage.stage2.distill_from=none"])
    assert recipe.table("stage2").distill_from is None
    assert recipe.table("stage1-experts").distill_from == "teacher"
