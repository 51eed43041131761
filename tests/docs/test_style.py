"""One house style: an image is called an image in documents and in help, and help fits a terminal."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ebnet.cli.app import app
from tests.docs.commands import ROOT
from tests.program import commands

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]
RIDDLES = r"told beside|decides? nothing"


def prose(page: Path) -> str:
    """Without code, which may name a file or a class as it likes."""
    return re.sub(r"```.*?```|`[^`]*`", "", page.read_text(), flags=re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_an_image_is_an_image(page: Path) -> None:
    assert re.findall(rf"\b[Pp]ictures?\b|{RIDDLES}", prose(page)) == []


@pytest.mark.parametrize("command", commands())
def test_help_is_plain_and_fits_80_columns(command: str) -> None:
    told = CliRunner().invoke(app, [*command.split(), "--help"], env={"COLUMNS": "80"}).output
    assert not re.search(r"\b[Pp]ictures?\b|<\w+( range)?>|list\[|…", told)
    assert max(map(len, told.splitlines())) <= 80
