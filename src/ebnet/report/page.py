"""The report: sections of facts and figures in one HTML file that needs no network."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from pathlib import Path

from ebnet.files import write_atomically
from ebnet.report.figure import PALETTE, Figure
from ebnet.report.html import figure_html


@dataclass(frozen=True)
class Table:
    """Numbers that are better read than seen; the first column names the row."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Section:
    title: str
    text: str = ""
    figures: Sequence[Figure] = ()
    table: Table | None = None


@dataclass(frozen=True)
class Thumbnails:
    """Small square pictures in one PNG, row by row; a point of a scatter plot shows one of them."""

    png: bytes
    columns: int
    rows: int


@dataclass(frozen=True)
class Report:
    title: str
    subtitle: str
    facts: Sequence[tuple[str, str]]
    """What matters most: a number and what it is."""
    sections: Sequence[Section]
    thumbnails: Thumbnails | None = None
    panel: str = ""
    """HTML of a panel to try the network, shown first."""
    figures: list[Figure] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "figures", [figure for section in self.sections for figure in section.figures])

    def write(self, path: Path) -> Path:
        """The HTML file; it appears whole or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, self.html().encode())
        return path

    def html(self) -> str:
        facts = "".join(f"<div><b>{escape(value)}</b><span>{escape(name)}</span></div>" for value, name in self.facts)
        titles = [*(["Try it"] if self.panel else []), *(section.title for section in self.sections)]
        contents = "".join(f'<a href="#{_anchor(title)}">{escape(title)}</a>' for title in titles)
        panel = f'<section id="try-it"><h2>Try it</h2>{self.panel}</section>' if self.panel else ""
        return (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{escape(self.title)}</title><style>{_static('report.css')}{_colours()}"
            f"{self._sprite()}</style></head><body><header><div><h1>{escape(self.title)}</h1><p>{escape(self.subtitle)}"
            '</p></div><button id="theme" type="button" aria-label="switch between light and dark">◐</button></header>'
            f'<main><div class="facts">{facts}</div><nav>{contents}</nav>'
            f'{panel}{"".join(_section(s) for s in self.sections)}</main><div id="tip" role="tooltip" hidden></div>'
            f"<script>{_static('report.js')}</script></body></html>\n"
        )

    def _sprite(self) -> str:
        if self.thumbnails is None:
            return ""
        data = base64.b64encode(self.thumbnails.png).decode()
        return (
            f"#tip .picture{{background-image:url(data:image/png;base64,{data});"
            f"--columns:{self.thumbnails.columns};--rows:{self.thumbnails.rows}}}"
        )


def _section(section: Section) -> str:
    text = f"<p>{escape(section.text)}</p>" if section.text else ""
    table = "" if section.table is None else _table(section.table)
    figures = "".join(map(figure_html, section.figures))
    return f'<section id="{_anchor(section.title)}"><h2>{escape(section.title)}</h2>{text}{table}{figures}</section>'


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in table.columns)
    rows = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>' + "".join(f"<td>{escape(v)}</td>" for v in row[1:]) + "</tr>"
        for row in table.rows
    )
    return f'<div class="wide"><table class="numbers"><tr>{head}</tr>{rows}</table></div>'


def _anchor(title: str) -> str:
    return title.lower().replace(" ", "-")


def _static(name: str) -> str:
    return files("ebnet.report").joinpath("static", name).read_text(encoding="utf-8")


def _colours() -> str:
    return "".join(f".c{i}{{--c:{colour}}}" for i, colour in enumerate(PALETTE))
