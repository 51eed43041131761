"""A comparison as a figure: every contestant's accuracy, seed by seed."""

from pathlib import Path
from statistics import mean

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ebnet.compare.standings import Standing
from ebnet.report.figure import PALETTE
from ebnet.report.plots import STYLE


def save_figure(rows: list[Standing], path: Path) -> None:
    """Dots are seeds, bars their means; one row a contestant, best first. Only those that have accuracies."""
    shown = [row for row in rows if row.top1]
    with matplotlib.rc_context(STYLE):
        canvas = Figure(figsize=(7, 0.9 + 0.32 * len(shown)), layout="constrained")
        FigureCanvasAgg(canvas)
        axes = canvas.add_subplot()
        for height, row in enumerate(shown):
            values = list(row.top1.values())
            axes.scatter(values, [height] * len(values), s=14, color=PALETTE[0])
            axes.plot([mean(values)] * 2, [height - 0.25, height + 0.25], color=PALETTE[1])
        axes.set_yticks(range(len(shown)), [row.contestant for row in shown])
        axes.invert_yaxis()
        axes.set_xlabel("top-1 on the validation images, %")
        path.parent.mkdir(parents=True, exist_ok=True)
        canvas.savefig(path, metadata={"Date": None})
