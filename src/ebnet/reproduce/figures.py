"""One figure a claim: every variant's accuracy, seed by seed."""

from pathlib import Path
from statistics import mean

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ebnet.report.figure import PALETTE
from ebnet.report.plots import STYLE
from ebnet.reproduce.verdict import Judgement, uncertainty

MEASURES = {"stage1": "Stage I", "stage2": "Stage II"}


def save_figure(judgement: Judgement, path: Path) -> None:
    """Dots are seeds, bars their means, lines how far these may be off (t s of the rule); one row a variant."""
    variants = [variant for variant in judgement.claim.variants if judgement.of(variant)]
    with matplotlib.rc_context(STYLE):
        canvas = Figure(figsize=(7, 0.9 + 0.42 * len(variants)), layout="constrained")
        FigureCanvasAgg(canvas)
        axes = canvas.add_subplot()
        for at, (measure, title) in enumerate(MEASURES.items()):
            for row, variant in enumerate(variants):
                reached = [run.accuracy(measure) for run in judgement.of(variant) if not run.failed]
                values = [value for value in reached if value is not None]
                height = row + (0.14 if at else -0.14)
                axes.scatter(values, [height] * len(values), s=14, color=PALETTE[at], label=title if row == 0 else None)
                if values:
                    axes.plot([mean(values)] * 2, [height - 0.12, height + 0.12], color=PALETTE[at])
                if len(values) > 1:
                    axes.errorbar(mean(values), height, xerr=uncertainty(values), color=PALETTE[at], linewidth=0.8)
        axes.set_yticks(range(len(variants)), variants)
        axes.invert_yaxis()
        axes.set_xlabel("top-1 on the validation images, %")
        axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
        path.parent.mkdir(parents=True, exist_ok=True)
        canvas.savefig(path, metadata={"Date": None})
