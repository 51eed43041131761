"""Figures as data. `html` draws them for the report and `plots` as PNG and SVG files; both read the same numbers."""

from collections.abc import Sequence
from dataclasses import dataclass, field

PALETTE = (
    "#3b7dd8", "#e0862d", "#3f9b57", "#c9506b", "#8565c4", "#1f9aa5", "#a8842c", "#d16fb0", "#6b7c93", "#7f9a2b",
)  # fmt: skip
"""Told apart by most eyes, and legible on white and on black."""


@dataclass(frozen=True)
class Series:
    """One line, or one colour of stacked bars; `tips[i]` is what hovering over value i says."""

    name: str
    values: Sequence[float]
    tips: Sequence[str] = ()
    x: Sequence[float] = ()
    """Where the values lie, for lines; bars stand at their categories."""


@dataclass(frozen=True)
class Span:
    """A stretch of the x axis with a name, such as a phase of training."""

    start: float
    end: float
    label: str


@dataclass(frozen=True)
class Figure:
    """`name` names the file, `title` heads the figure and `note` explains it in a sentence or two."""

    name: str
    title: str
    note: str


@dataclass(frozen=True)
class Lines(Figure):
    series: Sequence[Series]
    x_label: str
    y_label: str
    spans: Sequence[Span] = ()


@dataclass(frozen=True)
class Bars(Figure):
    """Horizontal bars, one a category, the series stacked."""

    categories: Sequence[str]
    series: Sequence[Series]
    labels: Sequence[str]
    """The number written at the end of each bar."""
    limit: float | None = None
    """What a full bar stands for; the longest bar if not given."""


@dataclass(frozen=True)
class Strips(Figure):
    """One row a category: a dot for each of its values, a mark at their mean, a line as far as that may be off."""

    categories: Sequence[str]
    series: Sequence[Series]
    """The values of each category; its name is a word for each of them."""
    errors: Sequence[float]
    """Standard errors of the means."""
    labels: Sequence[str]
    """The number written at the end of each row."""
    x_label: str


@dataclass(frozen=True)
class HeatMap(Figure):
    """Shares of 1 in `values[row][column]`."""

    rows: Sequence[str]
    columns: Sequence[str]
    values: Sequence[Sequence[float]]
    row_label: str
    column_label: str


@dataclass(frozen=True)
class Colouring:
    """One way to colour points: each point's group, and the groups' names."""

    name: str
    groups: Sequence[int]
    names: Sequence[str]


@dataclass(frozen=True)
class Scatter(Figure):
    """Points, in the colours of the first colouring; a reader of the report may choose another."""

    x: Sequence[float]
    y: Sequence[float]
    tips: Sequence[str]
    colourings: Sequence[Colouring]
    x_label: str = ""
    y_label: str = ""
    """Axes without labels have no meaning, as those of t-SNE, and get no numbers."""
    pictures: bool = False
    """Whether point i shows thumbnail i of the report."""
    front: Sequence[int] = field(default_factory=tuple)
    """Points that a line connects, such as a Pareto front."""


@dataclass(frozen=True)
class Choice(Figure):
    """Figures of which one is shown; the last is shown first."""

    label: str
    options: Sequence[Figure]


@dataclass(frozen=True)
class Gallery(Figure):
    """Small images in a row that wraps, each with a caption of a line or two."""

    images: Sequence[bytes]
    """PNG."""
    captions: Sequence[str]
