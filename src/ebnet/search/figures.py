"""Figures of a study, as in the paper: the front, the constellations of each direction, and what paid."""

from pathlib import Path
from typing import Any

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from ebnet.files import explained
from ebnet.search.budget import TITLES
from ebnet.search.candidate import Candidate
from ebnet.search.directions import Sweep
from ebnet.search.population import Member, Population

FORMATS = ("png", "svg")


def draw_figures(found: Population, directory: Path) -> list[Path]:
    """Write every figure as PNG and SVG; the files written."""
    with explained(directory):
        directory.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for name, draw in (("pareto", _pareto), ("constellations", _constellations), ("payoff", _payoff)):
        figure = draw(found)
        for kind in FORMATS:
            path = directory / f"{name}.{kind}"
            with explained(path):
                figure.savefig(path, dpi=150, metadata={"Date": None} if kind == "svg" else None)
            written.append(path)
    return written


def _pareto(found: Population) -> Figure:
    """Accuracy against cost, the Pareto front drawn through, the budget and the winner marked."""
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    _points(axes, found, _trained(found), "#9aa5b1", "trained")
    front = sorted((member for member in _trained(found) if member.on_front), key=lambda m: m.costs[found.cost])
    xs, ys = _coordinates(found, front)
    axes.plot(xs, ys, drawstyle="steps-post", color="#1f6feb", linewidth=1.2)
    axes.plot(xs, ys, "o", color="#1f6feb", label="Pareto front")
    for member, x, y in zip(front, xs, ys, strict=True):
        axes.annotate(str(member.candidate.arch), (x, y), xytext=(4, 4), textcoords="offset points", fontsize=7)
    if found.winner is not None:
        axes.plot(*_coordinates(found, [found.winner]), "*", color="#d1242f", markersize=15, label="winner")
    for budget in found.budgets:
        if budget.cost == found.cost:
            axes.axvline(budget.limit, color="#57606a", linestyle="--", linewidth=1, label=f"budget {budget}")
    _label(axes, found, f"{found.name}: accuracy against {TITLES[found.cost]}")
    axes.legend(fontsize=8)
    return figure


def _constellations(found: Population) -> Figure:
    """One panel for each direction: its networks, joined to their origin; 1x1 aggregation on (dots) and off (rings)."""
    directions = [*found.decisions.settings.directions, "combination"]
    columns = 3
    rows = -(-len(directions) // columns)
    figure = Figure(figsize=(5 * columns, 3.8 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False, sharey=True)
    colours = colormaps["tab10"]
    for axes, direction in zip(panels.flat, directions, strict=False):
        for number, sweep in enumerate(found.decisions.sweeps):
            members = _of_direction(found, sweep, direction)
            if members:
                colour = colours(number % 10)
                _constellation(axes, found, sweep.origin, members, colour, f"round {sweep.round + 1}")
        _label(axes, found, direction)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize=7)
    for axes in list(panels.flat)[len(directions) :]:
        axes.set_visible(False)
    return figure


def _constellation(
    axes: Axes, found: Population, origin: Candidate, members: list[Member], colour: Any, label: str
) -> None:
    start = found.member(origin)
    joined = members + ([start] if start is not None and start.accuracy is not None else [])
    joined.sort(key=lambda member: (member.costs[found.cost], member.accuracy or 0.0))
    axes.plot(*_coordinates(found, joined), "--", color=colour, linewidth=0.8)
    for aggregates, fill in ((True, colour), (False, "none")):
        some = [member for member in joined if member.candidate.aggregation is aggregates]
        xs, ys = _coordinates(found, some)
        axes.scatter(xs, ys, s=28, facecolors=fill, edgecolors=[colour], label=label if aggregates else None)
    for member, x, y in zip(joined, *_coordinates(found, joined), strict=True):
        axes.annotate(str(member.candidate.arch), (x, y), xytext=(3, 3), textcoords="offset points", fontsize=6)


def _payoff(found: Population) -> Figure:
    """Points of accuracy that the best network of each direction gained over the origin of its round."""
    figure = Figure(figsize=(8, 0.6 + 0.4 * max(len(found.payoffs), 3)), layout="constrained")
    axes = figure.subplots()
    labels = [f"round {payoff.round + 1}: {payoff.direction}" for payoff in found.payoffs]
    gains = [100 * payoff.gain for payoff in found.payoffs]
    colours = ["#1f883d" if payoff.gain > 0 else "#cf222e" for payoff in found.payoffs]
    bars = axes.barh(range(len(labels)), gains, color=colours)
    axes.bar_label(bars, [f"{p.best.arch}  x{p.cost_ratio:.2f} cost" for p in found.payoffs], fontsize=7, padding=3)
    axes.set_yticks(range(len(labels)), labels, fontsize=8)
    axes.invert_yaxis()
    axes.margins(x=0.35)
    axes.axvline(0, color="#57606a", linewidth=0.8)
    axes.set_xlabel("points of top-1 accuracy gained")
    return figure


def _of_direction(found: Population, sweep: Sweep, direction: str) -> list[Member]:
    keys = {
        proposal.candidate
        for proposal in sweep.proposals
        if proposal.directions == (direction,) or (direction == "combination" and len(proposal.directions) > 1)
    }
    return [member for member in _trained(found) if member.candidate in keys]


def _trained(found: Population) -> list[Member]:
    return [member for member in found.members if member.accuracy is not None and found.cost in member.costs]


def _coordinates(found: Population, members: list[Member]) -> tuple[list[float], list[float]]:
    return [member.costs[found.cost] for member in members], [100 * (member.accuracy or 0.0) for member in members]


def _points(axes: Axes, found: Population, members: list[Member], colour: str, label: str) -> None:
    axes.plot(*_coordinates(found, members), "o", color=colour, markersize=4, label=label)


def _label(axes: Axes, found: Population, title: str) -> None:
    axes.set_title(title, fontsize=10)
    measured = found.cost == "latency_ms"
    axes.set_xlabel(f"latency, ms ({found.decisions.settings.machine})" if measured else TITLES[found.cost])
    axes.xaxis.set_major_locator(MaxNLocator(5))
    if not measured:
        axes.xaxis.set_major_formatter(EngFormatter())
    axes.set_ylabel("Stage I top-1 %")
    axes.grid(alpha=0.25)
