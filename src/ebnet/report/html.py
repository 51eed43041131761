"""Figures as HTML: boxes and stretched SVG, so that text keeps its size on a phone and nothing needs a script.

Places are in percent of the box. What hovering shows stands in `data-tip`; `static/report.js` brings it up.
"""

import base64
from collections.abc import Sequence
from functools import singledispatch
from html import escape
from statistics import mean

from ebnet.report.figure import PALETTE, Bars, Choice, Figure, Gallery, HeatMap, Lines, Scatter, Series, Strips
from ebnet.report.scale import Scale, make_scale, number


@singledispatch
def draw(figure: Figure) -> str:
    """The inside of a figure, without title and note."""
    raise TypeError(f"no way to draw {type(figure).__name__}")


def figure_html(figure: Figure) -> str:
    """The whole figure."""
    note = f"<figcaption>{escape(figure.note)}</figcaption>" if figure.note else ""
    return f'<figure id="{figure.name}"><h3>{escape(figure.title)}</h3>{draw(figure)}{note}</figure>'


@draw.register
def _(figure: Lines) -> str:
    xs = [x for line in figure.series for x in line.x]
    ys = [y for line in figure.series for y in line.values]
    across, up = _axis(xs, round_ends=False), _axis(ys, round_ends=True)
    spans = "".join(
        f'<div class="span" style="left:{across.percent(s.start):.2f}%;'
        f'width:{across.percent(s.end) - across.percent(s.start):.2f}%"><span>{escape(s.label)}</span></div>'
        for s in figure.spans
    )
    body = spans + _svg("".join(_path(line, i, across, up) for i, line in enumerate(figure.series)))
    body += "".join(
        _dot(across.percent(x), up.percent(y), i, tip)
        for i, line in enumerate(figure.series)
        for x, y, tip in zip(line.x, line.values, line.tips, strict=True)
    )
    return _legend([line.name for line in figure.series]) + _axes(body, across, up, figure.x_label, figure.y_label)


@draw.register
def _(figure: Bars) -> str:
    totals = [sum(s.values[i] for s in figure.series) for i in range(len(figure.categories))]
    limit = figure.limit or max(totals) or 1.0
    rows = []
    for i, category in enumerate(figure.categories):
        parts = "".join(
            f'<i class="c{k % len(PALETTE)}" style="width:{100 * s.values[i] / limit:.3f}%" {_tip(s.tips[i])}></i>'
            for k, s in enumerate(figure.series)
            if s.values[i] > 0
        )
        rows.append(
            f'<div class="bar-name">{escape(category)}</div><div class="bar">{parts}</div>'
            f'<div class="bar-label">{escape(figure.labels[i])}</div>'
        )
    legend = _legend([s.name for s in figure.series]) if len(figure.series) > 1 else ""
    return f'{legend}<div class="bars">{"".join(rows)}</div>'


@draw.register
def _(figure: Strips) -> str:
    ends = [end for s, error in zip(figure.series, figure.errors, strict=True) for end in _ends(s, error)]
    across = _axis(ends, round_ends=True)
    rows = []
    for category, s, error, label in zip(figure.categories, figure.series, figure.errors, figure.labels, strict=True):
        dots = "".join(_dot(across.percent(x), 50, 0, tip) for x, tip in zip(s.values, s.tips, strict=True))
        low, middle, high = (across.percent(mean(s.values) + times * error) for times in (-1, 0, 1))
        marks = (
            f'<b class="error" style="left:{low:.2f}%;width:{high - low:.2f}%"></b>'
            f'<b class="mean c1" style="left:{middle:.2f}%"></b>'
        )
        rows.append(
            f'<div class="bar-name">{escape(category)}</div><div class="strip">{marks}{dots}</div>'
            f'<div class="bar-label">{escape(label)}</div>'
        )
    ticks = "".join(f'<span style="left:{across.percent(t):.2f}%">{number(t)}</span>' for t in across.ticks)
    foot = f'<div></div><div class="x-ticks">{ticks}</div><div></div>'
    return f'<div class="bars">{"".join(rows)}{foot}</div><div class="x-label">{escape(figure.x_label)}</div>'


def _ends(values: Series, error: float) -> tuple[float, float]:
    """How far a row reaches."""
    middle = mean(values.values)
    return min(*values.values, middle - error), max(*values.values, middle + error)


@draw.register
def _(figure: HeatMap) -> str:
    head = "".join(f'<th scope="col">{escape(c)}</th>' for c in figure.columns)
    rows = []
    for name, values in zip(figure.rows, figure.values, strict=True):
        of_row = f"{figure.row_label} {name}"
        cells = "".join(
            f'<td style="--v:{value:.3f}" {_tip(f"{of_row}, {figure.column_label} {column}: {value:.1%}")}>'
            f"{100 * value:.0f}</td>"
            for column, value in zip(figure.columns, values, strict=True)
        )
        rows.append(f'<tr><th scope="row">{escape(name)}</th>{cells}</tr>')
    corner = f"<th>{escape(figure.row_label)} \\ {escape(figure.column_label)}</th>"
    return f'<div class="wide"><table class="heat"><tr>{corner}{head}</tr>{"".join(rows)}</table></div>'


@draw.register
def _(figure: Scatter) -> str:
    across, up = (_axis(v, round_ends=bool(figure.x_label)) for v in (figure.x, figure.y))
    first = figure.colourings[0]
    groups = zip(*(c.groups for c in figure.colourings), strict=True)
    dots = "".join(
        _dot(
            across.percent(x),
            up.percent(y),
            group[0],
            tip,
            f' data-g="{" ".join(map(str, group))}"' + (f' data-picture="{i}"' if figure.pictures else ""),
        )
        for i, (x, y, tip, group) in enumerate(zip(figure.x, figure.y, figure.tips, groups, strict=True))
    )
    front = Series("", [figure.y[i] for i in figure.front], (), [figure.x[i] for i in figure.front])
    line = _svg(_path(front, None, across, up)) if figure.front else ""
    plot = (
        _axes(line + dots, across, up, figure.x_label, figure.y_label)
        if figure.x_label
        else f'<div class="plot bare"><div class="box">{dots}</div></div>'
    )
    if len(figure.colourings) == 1:
        return _legend(first.names) + plot
    options = "".join(f'<option value="{i}">{escape(c.name)}</option>' for i, c in enumerate(figure.colourings))
    legends = "".join(_legend(c.names, hidden=i > 0) for i, c in enumerate(figure.colourings))
    chooser = f'<label class="chooser">coloured by <select data-colouring>{options}</select></label>'
    return f"{chooser}{legends}{plot}"


@draw.register
def _(figure: Choice) -> str:
    last = len(figure.options) - 1
    options = "".join(
        f'<option value="{i}"{" selected" if i == last else ""}>{escape(o.title)}</option>'
        for i, o in enumerate(figure.options)
    )
    bodies = "".join(
        f'<div class="option"{" hidden" if i != last else ""}>{draw(o)}</div>' for i, o in enumerate(figure.options)
    )
    return f'<label class="chooser">{escape(figure.label)} <select data-choice>{options}</select></label>{bodies}'


@draw.register
def _(figure: Gallery) -> str:
    shown = "".join(
        f'<div><img src="data:image/png;base64,{base64.b64encode(png).decode()}" alt="">'
        f"<span>{'<br>'.join(escape(line) for line in caption.splitlines())}</span></div>"
        for png, caption in zip(figure.images, figure.captions, strict=True)
    )
    return f'<div class="gallery">{shown}</div>'


def _axis(values: Sequence[float], round_ends: bool) -> Scale:
    """From the least to the greatest value, or from round number to round number."""
    scale = make_scale(min(values), max(values))
    return scale if round_ends or max(values) <= min(values) else Scale(min(values), max(values), scale.ticks)


def _axes(body: str, across: Scale, up: Scale, x_label: str, y_label: str) -> str:
    rows = "".join(
        f'<div class="grid-line" style="bottom:{up.percent(t):.2f}%"><span>{number(t)}</span></div>' for t in up.ticks
    )
    columns = "".join(
        f'<span style="left:{across.percent(t):.2f}%">{number(t)}</span>'
        for t in across.ticks
        if -1e-6 <= across.percent(t) <= 100 + 1e-6
    )
    return (
        f'<div class="plot"><div class="y-label">{escape(y_label)}</div><div class="box">{rows}{body}</div>'
        f'<div class="x-ticks">{columns}</div><div class="x-label">{escape(x_label)}</div></div>'
    )


def _svg(paths: str) -> str:
    return f'<svg viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true">{paths}</svg>'


def _path(line: Series, colour: int | None, across: Scale, up: Scale) -> str:
    points = " ".join(
        f"{across.percent(x):.2f},{100 - up.percent(y):.2f}" for x, y in zip(line.x, line.values, strict=True)
    )
    css = "front" if colour is None else f"c{colour % len(PALETTE)}"
    return f'<polyline class="{css}" points="{points}"/>'


def _dot(left: float, bottom: float, colour: int, tip: str, more: str = "") -> str:
    css = f"dot c{colour % len(PALETTE)}"
    return f'<i class="{css}" style="left:{left:.2f}%;bottom:{bottom:.2f}%" {_tip(tip)}{more}></i>'


def _tip(text: str) -> str:
    return f'data-tip="{escape(text, quote=True)}"'


def _legend(names: Sequence[str], hidden: bool = False) -> str:
    entries = "".join(f'<span><i class="c{i % len(PALETTE)}"></i>{escape(name)}</span>' for i, name in enumerate(names))
    return f'<div class="legend"{" hidden" if hidden else ""}>{entries}</div>'
