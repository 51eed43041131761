"""Every kind of figure, drawn both ways."""

from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from PIL import Image

from ebnet.report.figure import Bars, Choice, Colouring, Figure, HeatMap, Lines, Scatter, Series, Span, Strips
from ebnet.report.html import figure_html
from ebnet.report.plots import save_figures

HOSTILE = '<script>alert("1")</script>'
HEAT = HeatMap("heat", "Heat", "", ["0", "1"], ["a", HOSTILE], [[0.25, 1.0], [0.75, 0.0]], "expert", "class")
ONE = Series("one", [1, 3], ["a", HOSTILE], [1, 2])
STACKED = [Series("s", [1, 2], ["t", HOSTILE]), Series("u", [0, 1], ["", "z"])]
COLOURING = Colouring("c", [0, 1, 0], ["p", HOSTILE])
KINDS = [
    Lines("lines", HOSTILE, "note", [ONE], "x", "y", [Span(1, 2, HOSTILE)]),
    Bars("bars", "Bars", "note", ["p", HOSTILE], STACKED, ["1", "3"]),
    Strips("strips", "Strips", "note", ["p", HOSTILE], STACKED, [0.5, 0.0], ["1", HOSTILE], "x"),
    HEAT,
    Scatter("scatter", "", "", [1, 2, 3], [3, 1, 2], ["a", "b", HOSTILE], [COLOURING], "x", "y", front=[1, 0]),
    Choice("choice", "Choice", "", "layer", [HEAT]),
]


class Reader(HTMLParser):
    """Collects attributes, and counts what is opened and not closed."""

    def __init__(self) -> None:
        super().__init__()
        self.depth, self.attributes, self.tags, self.text = 0, list[tuple[str, str]](), list[str](), ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.depth += 1
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self.depth -= 1

    def handle_data(self, data: str) -> None:
        self.text += data


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    assert reader.depth == 0
    return reader


@pytest.mark.parametrize("figure", KINDS, ids=lambda f: f.name)
def test_html_is_closed_and_escaped(figure: Figure) -> None:
    reader = read(figure_html(figure))
    assert "script" not in reader.tags
    assert HOSTILE in reader.text


def test_places_in_percent() -> None:
    reader = read(figure_html(Lines("l", "", "", [Series("s", [0, 10], ["low", "high"], [5, 9])], "x", "y")))
    styles = [value for name, value in reader.attributes if name == "style"]
    assert "left:0.00%;bottom:0.00%" in styles
    assert "left:100.00%;bottom:100.00%" in styles
    assert ("data-tip", "high") in reader.attributes


def test_bars_are_proportional_to_the_longest() -> None:
    reader = read(figure_html(Bars("b", "", "", ["p", "q"], [Series("s", [1, 4], ["", ""])], ["1", "4"])))
    assert [value for name, value in reader.attributes if name == "style"] == ["width:25.000%", "width:100.000%"]


def test_files_of_every_figure(tmp_path: Path) -> None:
    written = save_figures(KINDS, tmp_path)
    assert {path.name for path in written} == {
        f"{name}.{kind}" for name in ("lines", "bars", "strips", "heat", "scatter") for kind in ("png", "svg")
    }
    with Image.open(tmp_path / "scatter.png") as image:
        assert min(image.size) > 300
        assert len(image.convert("L").getcolors(256) or []) > 2
    assert ElementTree.parse(tmp_path / "lines.svg").getroot().tag.endswith("svg")


def test_equal_figures_give_equal_files(tmp_path: Path) -> None:
    for directory in ("a", "b"):
        save_figures([KINDS[0]], tmp_path / directory)
    assert (tmp_path / "a" / "lines.svg").read_bytes() == (tmp_path / "b" / "lines.svg").read_bytes()
