"""Tiny data sets on disk, written anew for each test."""

from pathlib import Path

import pytest
from tests import small_data


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return small_data.write_photographs(tmp_path / "photos")


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    return small_data.write_shards(tmp_path / "shards")
