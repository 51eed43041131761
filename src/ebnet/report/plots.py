"""Figures as PNG and SVG files, for papers and slides."""

import io
from collections.abc import Iterator
from functools import singledispatch
from pathlib import Path
from statistics import mean
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas

from ebnet.report.figure import PALETTE, Bars, Choice, Figure, Gallery, HeatMap, Lines, Scatter, Strips

STYLE: Any = {
    "svg.hashsalt": "ebnet",  # equal figures give equal files
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


ACROSS = 8
"""Images in a row of a gallery."""


def save_figures(figures: list[Figure], directory: Path) -> list[Path]:
    """Write every figure as NAME.png and NAME.svg; each option of a choice is a figure of its own."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for figure in _single(figures):
        for kind in ("png", "svg"):
            paths.append(directory / f"{figure.name}.{kind}")
            save_figure(figure, paths[-1])
    return paths


def save_figure(figure: Figure, path: Path) -> None:
    """Write one figure; the end of the name says in which format."""
    with matplotlib.rc_context(STYLE):
        canvas = Canvas(figsize=(7, _height(figure)), layout="constrained")
        FigureCanvasAgg(canvas)
        axes = canvas.add_subplot()
        axes.set_title(figure.title, loc="left", fontweight="bold")
        plot(figure, axes)
        canvas.savefig(path, dpi=160, metadata={"Date": None} if path.suffix == ".svg" else None)


def _single(figures: list[Figure]) -> Iterator[Figure]:
    for figure in figures:
        if isinstance(figure, Choice):
            yield from figure.options
        else:
            yield figure


def _height(figure: Figure) -> float:
    if isinstance(figure, Bars):
        return 1.4 + 0.28 * len(figure.categories)
    if isinstance(figure, Strips):
        return 1.3 + 0.3 * len(figure.categories)
    if isinstance(figure, HeatMap):
        return 1.4 + 0.35 * len(figure.rows)
    if isinstance(figure, Gallery):
        return 0.6 + 1.3 * -(-len(figure.images) // ACROSS)
    return 5.5 if isinstance(figure, Scatter) else 4


@singledispatch
def plot(figure: Figure, axes: Axes) -> None:
    """Draw a figure on matplotlib axes."""
    raise TypeError(f"no way to draw {type(figure).__name__}")


@plot.register
def _(figure: Lines, axes: Axes) -> None:
    for i, line in enumerate(figure.series):
        axes.plot(line.x, line.values, ".-", color=_colour(i), label=line.name, linewidth=1.4, markersize=4)
    for span in figure.spans:
        axes.axvline(span.start, color="#bbbbbb", linewidth=0.7)
        middle = (span.start + span.end) / 2
        axes.text(
            middle, 0.99, span.label, transform=axes.get_xaxis_transform(), ha="center", va="top", color="#666666"
        )
    axes.set_xlabel(figure.x_label)
    axes.set_ylabel(figure.y_label)
    axes.margins(y=0.12)
    axes.legend(frameon=False)


@plot.register
def _(figure: Bars, axes: Axes) -> None:
    places = range(len(figure.categories))
    left = [0.0 for _ in places]
    for i, part in enumerate(figure.series):
        axes.barh(places, part.values, left=left, color=_colour(i), label=part.name, height=0.75)
        left = [a + b for a, b in zip(left, part.values, strict=True)]
    for place, end, label in zip(places, left, figure.labels, strict=True):
        axes.annotate(label, (end, place), (3, 0), textcoords="offset points", va="center", fontsize=8)
    axes.set_yticks(places, figure.categories)
    axes.invert_yaxis()
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)
    axes.set_xlim(0, 1.18 * (figure.limit or max(left) or 1))
    if len(figure.series) > 1:
        axes.legend(frameon=False, ncols=4, loc="upper left", bbox_to_anchor=(0, 0), fontsize=8)


@plot.register
def _(figure: Strips, axes: Axes) -> None:
    for row, (series, error) in enumerate(zip(figure.series, figure.errors, strict=True)):
        axes.scatter(series.values, [row] * len(series.values), s=14, color=_colour(0))
        middle = mean(series.values)
        axes.plot([middle] * 2, [row - 0.25, row + 0.25], color=_colour(1))
        axes.errorbar(middle, row, xerr=error, color=_colour(1), linewidth=0.8)
    axes.set_yticks(range(len(figure.categories)), figure.categories)
    axes.invert_yaxis()
    axes.set_xlabel(figure.x_label)


@plot.register
def _(figure: HeatMap, axes: Axes) -> None:
    axes.imshow(figure.values, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for i, row in enumerate(figure.values):
        for j, value in enumerate(row):
            axes.text(j, i, f"{100 * value:.0f}", ha="center", va="center", color="white" if value > 0.5 else "black")
    axes.set_xticks(range(len(figure.columns)), figure.columns)
    axes.set_yticks(range(len(figure.rows)), figure.rows)
    axes.set_xlabel(figure.column_label)
    axes.set_ylabel(figure.row_label)


@plot.register
def _(figure: Scatter, axes: Axes) -> None:
    colouring = figure.colourings[0]
    for group, name in enumerate(colouring.names):
        chosen = [i for i, g in enumerate(colouring.groups) if g == group]
        axes.scatter(
            [figure.x[i] for i in chosen], [figure.y[i] for i in chosen], s=14, color=_colour(group), label=name
        )
    axes.plot(
        [figure.x[i] for i in figure.front], [figure.y[i] for i in figure.front], color="#888888", linewidth=1, zorder=0
    )
    if figure.x_label:
        axes.set_xlabel(figure.x_label)
        axes.set_ylabel(figure.y_label)
    else:
        axes.set_axis_off()
    axes.legend(frameon=False, fontsize=8)


@plot.register
def _(figure: Gallery, axes: Axes) -> None:
    from PIL import Image

    axes.set_axis_off()
    rows = -(-len(figure.images) // ACROSS)
    for i, (png, caption) in enumerate(zip(figure.images, figure.captions, strict=True)):
        left, bottom = i % ACROSS / ACROSS, 1 - (i // ACROSS + 1) / rows
        cell = axes.inset_axes((left, bottom + 0.3 / rows, 0.9 / ACROSS, 0.65 / rows))
        cell.imshow(np.asarray(Image.open(io.BytesIO(png)).convert("RGB")))
        cell.set_axis_off()
        axes.text(left, bottom + 0.26 / rows, caption, fontsize=5.5, va="top", transform=axes.transAxes)


def _colour(index: int) -> str:
    return PALETTE[index % len(PALETTE)]
