import gzip
import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.small_data import idx
from tests.web_site import Site

from ebnet.data import fetch as module
from ebnet.data import open_dataset
from ebnet.data.fetch import SOURCES, Source, fetch
from ebnet.errors import DataError


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.close()


@pytest.fixture
def archive(folder: Path) -> bytes:
    """Imagenette in small."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        tar.add(folder, "imagenette2-160")
    return out.getvalue()


@pytest.fixture
def imagenette(site: Site, archive: bytes, monkeypatch: pytest.MonkeyPatch) -> Source:
    source = site.publish("imagenette2-160.tgz", archive)
    monkeypatch.setitem(SOURCES, "imagenette", (source,))
    return source


def test_fetch_downloads_unpacks_and_is_found(
    imagenette: Source, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EBNET_DATA", str(tmp_path / "home"))
    with pytest.raises(DataError, match="not on this machine; run `ebnet data fetch imagenette`"):
        open_dataset("imagenette")
    seen: list[tuple[str, int, int | None]] = []
    directory = fetch("imagenette", report=lambda *progress: seen.append(progress))
    assert [p.name for p in directory.iterdir()] == ["imagenette2-160"]
    assert len(open_dataset("imagenette")) == 18
    size = len(site.files[imagenette.name])
    assert seen[-1] == (imagenette.name, size, size)
    fetch("imagenette")
    assert len(site.requests) == 1  # nothing is downloaded twice


def test_files_that_are_no_archives_stay_as_they_are(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = []
    for source in SOURCES["fashion-mnist"]:
        shape = (2, 28, 28) if "images" in source.name else (2,)
        sources.append(site.publish(source.name, gzip.compress(idx(np.zeros(shape, np.uint8)))))
    monkeypatch.setitem(SOURCES, "fashion-mnist", tuple(sources))
    assert len(open_dataset("fashion-mnist", fetch("fashion-mnist", tmp_path), "val")) == 2


@pytest.mark.parametrize("ranges", [True, False])
def test_an_interrupted_download_goes_on(imagenette: Source, site: Site, tmp_path: Path, ranges: bool) -> None:
    site.hang_up_after, site.ranges = 700, ranges
    with pytest.raises(DataError, match=r"bytes early\); run the same command again to go on"):
        fetch("imagenette", tmp_path)
    assert (tmp_path / "imagenette2-160.tgz.part").stat().st_size == 700
    assert not (tmp_path / "imagenette2-160.tgz").exists()
    site.hang_up_after = None
    fetch("imagenette", tmp_path)
    assert site.requests == ["", "bytes=700-"]
    assert len(open_dataset("imagenette", tmp_path)) == 18
    assert not list(tmp_path.glob("*.part"))


def test_a_download_that_was_complete_is_not_repeated(imagenette: Source, site: Site, tmp_path: Path) -> None:
    (tmp_path / "imagenette2-160.tgz.part").write_bytes(site.files[imagenette.name])
    fetch("imagenette", tmp_path)
    assert len(open_dataset("imagenette", tmp_path)) == 18


def test_wrong_bytes_are_never_unpacked(imagenette: Source, site: Site, tmp_path: Path) -> None:
    site.files[imagenette.name] = b"something else"
    with pytest.raises(DataError, match=rf"MD5 is [0-9a-f]{{32}}, expected {imagenette.md5}"):
        fetch("imagenette", tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["photos"]  # the fixture's own; no archive, part or directory


def test_without_network_the_message_says_what_to_put_where(
    imagenette: Source, site: Site, archive: bytes, tmp_path: Path
) -> None:
    site.close()
    path = tmp_path / "imagenette2-160.tgz"
    with pytest.raises(DataError) as caught:
        fetch("imagenette", tmp_path)
    for part in (imagenette.url, imagenette.md5, f"put it at {path}"):
        assert part in str(caught.value)
    path.write_bytes(b"wrong file")
    with pytest.raises(DataError, match="remove it and fetch it again"):
        fetch("imagenette", tmp_path)
    assert path.read_bytes() == b"wrong file"  # what the user brought is the user's to remove
    path.write_bytes(archive)
    fetch("imagenette", tmp_path)
    assert len(open_dataset("imagenette", tmp_path)) == 18


def test_a_page_that_is_gone_is_reported(imagenette: Source, site: Site, tmp_path: Path) -> None:
    del site.files[imagenette.name]
    with pytest.raises(DataError, match="HTTP 404"):
        fetch("imagenette", tmp_path)


@pytest.mark.parametrize("hostile", ["../outside.txt", "/outside.txt", "link"])
def test_an_archive_cannot_write_elsewhere(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hostile: str
) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        info = tarfile.TarInfo(hostile)
        if hostile == "link":
            info.type, info.linkname = tarfile.SYMTYPE, "../../outside.txt"
        tar.addfile(info)
    monkeypatch.setitem(SOURCES, "imagenette", (site.publish("imagenette2-160.tgz", out.getvalue()),))
    root = tmp_path / "a" / "b"
    if hostile.startswith("/"):
        fetch("imagenette", root)  # the leading slash is dropped: the file stays within
        assert not Path("/outside.txt").exists()
        return
    with pytest.raises(DataError, match="cannot be unpacked"):
        fetch("imagenette", root)
    assert not list(tmp_path.rglob("outside.txt"))
    assert not list(root.glob(".unpack-*"))


def test_what_cannot_be_fetched_says_what_can() -> None:
    with pytest.raises(DataError, match=r"mnist5k cannot be fetched .*these can: cifar10, cifar100"):
        fetch("mnist5k")
    with pytest.raises(DataError, match="no data set is called 'nothing'"):
        fetch("nothing")


def test_every_source_has_a_sum_and_is_encrypted() -> None:
    for sources in module.SOURCES.values():
        for source in sources:
            assert source.url.startswith("https://")
            assert len(bytes.fromhex(source.md5)) == 16
