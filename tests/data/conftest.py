"""Tiny data sets on disk, written anew for each test."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests import small_data

Photo = Callable[[int], bytes]
WriteShard = Callable[[Path, list[tuple[str, bytes]]], None]


@pytest.fixture(scope="session")
def photo() -> Photo:
    return small_data.photo


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return small_data.write_photographs(tmp_path / "photos")


@pytest.fixture(scope="session")
def write_shard() -> WriteShard:
    return small_data.write_shard


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    return small_data.write_shards(tmp_path / "shards")
