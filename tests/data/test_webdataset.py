import io
import os
import tarfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.small_data import photo, write_shard

from ebnet.data import open_dataset
from ebnet.data import webdataset as module
from ebnet.data.webdataset import WebDataset
from ebnet.errors import DataError


def png() -> bytes:
    out = io.BytesIO()
    Image.new("L", (4, 4), 9).save(out, "PNG")
    return out.getvalue()


def test_samples_are_found_in_order(shards: Path) -> None:
    data = open_dataset("webdataset", shards)
    assert len(data) == 32
    assert data.labels.tolist() == [n % 5 for n in range(32)]
    assert data.classes == list("01234")
    assert np.array_equal(data.image(17), np.asarray(Image.open(io.BytesIO(photo(17)))))
    assert data.source(17).endswith("train/016.tar, member x/0017.jpg")


def test_names_come_from_classes_txt_and_val_counts_as_train_does(shards: Path) -> None:
    assert open_dataset("webdataset", shards, "val").num_classes == 5  # its own labels stop at 3
    (shards / "classes.txt").write_text("a\nb\nc\nd\ne\n")
    assert open_dataset("webdataset", shards, "val").classes == list("abcde")
    (shards / "classes.txt").write_text("a\nb\n")
    with pytest.raises(DataError, match="class 4 in train, but only 2 classes are known"):
        open_dataset("webdataset", shards)


def test_shards_beside_each_other_are_told_apart_by_name(tmp_path: Path) -> None:
    for name in ("retrieval-train-0.tar", "retrieval-validation-0.tar"):
        write_shard(tmp_path / name, [("a.png", png()), ("a.cls", b"0\n"), ("a.json", b"{}")])
    assert [p.name for p in WebDataset(tmp_path, "val")._shards] == ["retrieval-validation-0.tar"]
    assert (open_dataset("webdataset", tmp_path, "val").image(0) == np.full((4, 4, 3), 9)).all()


def test_the_index_is_kept_and_made_anew_when_a_shard_changes(shards: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = open_dataset("webdataset", shards)
    with monkeypatch.context() as patch:
        patch.delattr(module, "_scan")
        again = open_dataset("webdataset", shards)
    assert np.array_equal(first.image(30), again.image(30))
    assert [p.name for p in shards.iterdir() if p.name.startswith(".")] == [".train.index.npz"]
    write_shard(shards / "train" / "008.tar", [("new.png", png()), ("new.cls", b"4")])
    assert len(open_dataset("webdataset", shards)) == 25


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04 not really", None])
def test_a_damaged_index_is_made_anew(shards: Path, damage: bytes | None) -> None:
    expected = open_dataset("webdataset", shards).image(3)
    index = shards / ".train.index.npz"
    index.write_bytes(index.read_bytes()[:-300] if damage is None else damage)
    assert np.array_equal(open_dataset("webdataset", shards).image(3), expected)


def test_an_index_that_cannot_be_saved_does_not_matter(shards: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise PermissionError("read-only")

    monkeypatch.setattr(module.np, "savez", refuse)
    assert len(open_dataset("webdataset", shards)) == 32
    assert not (shards / ".train.index.npz").exists()


def test_the_shuffle_moves_shards_and_mixes_within_windows(shards: Path) -> None:
    data = WebDataset(shards, "train", window=16)
    order = data.order(0, 0)
    assert sorted(order.tolist()) == list(range(32))
    halves = [sorted(set((order[half] // 8).tolist())) for half in (slice(16), slice(16, 32))]
    assert [len(h) for h in halves] == [2, 2]  # a window of 16 holds exactly two whole shards of 8
    firsts = {tuple(sorted(set((data.order(0, epoch)[:16] // 8).tolist()))) for epoch in range(12)}
    assert len(firsts) > 2
    assert not np.array_equal(order[:16], np.sort(order[:16]))


def test_missing_shards_are_explained(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nowhere: no such directory; expected shards like"):
        open_dataset("webdataset", tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"no train shards; expected train/\*\.tar"):
        open_dataset("webdataset", tmp_path)
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "0.tar.gz").touch()
    with pytest.raises(DataError, match="decompress the shards"):
        open_dataset("webdataset", tmp_path)


@pytest.mark.parametrize(
    ("members", "complaint"),
    [
        ([("a.cls", b"1")], "no images in it"),
        ([("a.png", b""), ("b.png", b""), ("b.cls", b"1")], r"the key 'a' has no class \(\.cls\)"),
        ([("a.png", b""), ("a.cls", b"1"), ("b.cls", b"1")], r"the key 'b' has no image"),
        ([("a.png", b""), ("a.jpg", b""), ("a.cls", b"1")], "a second image of the key 'a'"),
        ([("a.png", b""), ("a.cls", b"cat")], r"member a\.cls: b'cat' is not a class number"),
        ([("a.png", b""), ("a.cls", b"-1")], "is not a class number"),
    ],
)
def test_wrong_samples_are_named(tmp_path: Path, members: list[tuple[str, bytes]], complaint: str) -> None:
    write_shard(tmp_path / "train-0.tar", members)
    with pytest.raises(DataError, match=rf"train-0\.tar.*{complaint}"):
        open_dataset("webdataset", tmp_path)


def test_truncated_shards_are_named_wherever_they_are_cut(shards: Path) -> None:
    path = shards / "train" / "008.tar"
    whole = path.read_bytes()
    with tarfile.open(path) as archive:
        sixth = archive.getmembers()[6]
    cuts = [0, 100, sixth.offset, sixth.offset + 100, sixth.offset_data, sixth.offset_data + 1]
    for cut in cuts:
        path.write_bytes(whole[:cut])
        with pytest.raises(DataError, match=r"008\.tar: .*copy it again"):
            open_dataset("webdataset", shards)
    garbled = bytearray(whole)
    garbled[sixth.offset : sixth.offset + 200] = os.urandom(200)
    path.write_bytes(garbled)
    with pytest.raises(DataError, match=r"008\.tar: .*copy it again"):
        open_dataset("webdataset", shards)


def test_a_damaged_picture_or_a_shard_cut_later_is_named(shards: Path) -> None:
    data = open_dataset("webdataset", shards)
    path = shards / "train" / "024.tar"
    path.write_bytes(path.read_bytes()[:6000])
    with pytest.raises(DataError, match=r"024\.tar, member x/0031\.jpg: .*ends before the image does"):
        data.image(31)
    write_shard(shards / "train" / "024.tar", [("bad.jpg", b"\xff\xd8 nothing"), ("bad.cls", b"0")])
    with pytest.raises(DataError, match=r"024\.tar, member bad\.jpg: cannot be read as an image"):
        open_dataset("webdataset", shards).image(24)
