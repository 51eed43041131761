"""A password is never kept in a file, and PostgreSQL's own ways of giving one work."""

from pathlib import Path

import pytest

from ebnet.errors import StudyError
from ebnet.search import directory
from ebnet.search.storage import open_storage
from tests.search import postgres

pytestmark = pytest.mark.skipif(postgres.binaries() is None, reason="no PostgreSQL server is installed")


def test_the_environment_has_the_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with postgres.server(password="secret") as address:
        directory.create_directory(tmp_path / "study", address.replace("ebnet@", "ebnet:secret@"))
        pointer = tmp_path / "study" / directory.POINTER
        assert "secret" not in pointer.read_text()
        noted = directory._noted_url(tmp_path / "study")
        monkeypatch.delenv("PGPASSWORD", raising=False)
        with pytest.raises(StudyError, match="password"):
            open_storage(noted)
        monkeypatch.setenv("PGPASSWORD", "secret")
        assert open_storage(noted).get_all_studies() == []


def test_a_study_kept_with_stars_for_its_password(tmp_path: Path) -> None:
    """As earlier versions noted it."""
    (tmp_path / directory.POINTER).write_text('{"name": "a", "storage": "postgresql+psycopg://me:***@db/search"}')
    assert directory._noted_url(tmp_path) == "postgresql+psycopg://me@db/search"
