from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ebnet.data import ArrayDataset, open_dataset
from ebnet.errors import DataError


def test_classes_labels_and_pictures(folder: Path) -> None:
    data = open_dataset("folder", folder, "val")
    assert data.classes == ["ant", "bee", "cat"]
    assert data.num_classes == data.channels == 3
    assert [data.label(i) for i in range(len(data))] == [0, 0, 1, 1, 2, 2]
    with Image.open(folder / "val" / "bee" / "bee_1.jpg") as picture:
        assert np.array_equal(data.image(3), np.asarray(picture))


def test_grey_and_palette_pictures_become_rgb(folder: Path) -> None:
    Image.new("L", (20, 10), 77).save(folder / "train" / "ant" / "0.png")
    Image.new("RGB", (20, 10), (1, 2, 3)).convert("P").save(folder / "train" / "ant" / "1.png")
    data = open_dataset("folder", folder)
    assert data.image(0).shape == (10, 20, 3)
    assert (data.image(0) == 77).all()
    assert data.image(1).shape == (10, 20, 3)


def test_other_files_and_hidden_ones_are_passed_over(folder: Path) -> None:
    (folder / "train" / "ant" / "notes.txt").write_text("x")
    (folder / "train" / "ant" / "._ant.jpg").write_text("x")
    (folder / "train" / ".cache").mkdir()
    assert len(open_dataset("folder", folder)) == 18


def test_in_memory_is_the_centred_square_of_each(folder: Path) -> None:
    data = open_dataset("folder", folder)
    memory = data.in_memory(24)
    assert np.array_equal(memory.images, data.in_memory(24, workers=2).images)
    assert isinstance(memory, ArrayDataset)
    assert memory.images.shape == (18, 24, 24, 3)
    assert memory.labels.tolist() == data.labels.tolist()
    square = Image.fromarray(data.image(0)).resize((24, 24), Image.Resampling.BILINEAR, box=(4, 0, 44, 40))
    assert np.array_equal(memory.image(0), np.asarray(square))
    assert memory.in_memory() is memory
    assert memory.in_memory(12).images.shape == (18, 12, 12, 3)
    with pytest.raises(DataError, match=r"needs 0\.0 GiB of memory"):
        data.in_memory(24, limit=1000)
    with pytest.raises(DataError, match=r"say in_memory\(side=...\)"):
        data.in_memory()


def test_val_alone_has_its_own_classes(folder: Path) -> None:
    (folder / "train").rename(folder / "elsewhere")
    assert open_dataset("folder", folder, "val").classes == ["ant", "bee", "cat"]


def test_wrong_layouts_are_explained(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere: no such directory; expected ROOT/train/CLASS"):
        open_dataset("folder", tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"ant/train: no class directories"):
        open_dataset("folder", folder / "train" / "ant")
    (folder / "val" / "dog").mkdir()
    with pytest.raises(DataError, match=r"val/dog: this class is not in .*train"):
        open_dataset("folder", folder, "val")
    for name in ("train/a", "val/a"):
        (tmp_path / "empty" / name).mkdir(parents=True)
    with pytest.raises(DataError, match=r"empty/train: no images"):
        open_dataset("folder", tmp_path / "empty")


@pytest.mark.parametrize("damage", ["truncated", "no picture", "empty", "gone"])
def test_a_damaged_picture_is_named(folder: Path, damage: str) -> None:
    path = folder / "train" / "ant" / "ant_2.jpg"
    data = open_dataset("folder", folder)
    if damage == "gone":
        path.unlink()
    else:
        whole = path.read_bytes()
        path.write_bytes({"truncated": whole[: len(whole) // 2], "no picture": b"hello" * 100, "empty": b""}[damage])
    with pytest.raises(DataError, match=r"train/ant/ant_2\.jpg: cannot be read as an image"):
        data.image(2)
    with pytest.raises(DataError, match=r"train/ant/ant_2\.jpg"):
        data.in_memory(8)
