"""How the gates behaved under each routing, the same seeds beside each other: churn and usage."""

from pathlib import Path
from statistics import mean

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ebnet.report.figure import PALETTE
from ebnet.report.plots import STYLE
from ebnet.reproduce.verdict import Judgement, Run


def has_routing(judgement: Judgement) -> bool:
    """Whether two routings can be set beside each other: the claim tells of ours, and its records of churn."""
    told = any(comparison.way == "with our routing" for comparison in judgement.claim.compare)
    return told and len(_watched(judgement)) > 1


def save_routing(judgement: Judgement, path: Path) -> None:
    """Left the share of images that change expert, epoch by epoch; right the busiest expert's share at the end."""
    watched = _watched(judgement)
    with matplotlib.rc_context(STYLE):
        canvas = Figure(figsize=(7, 2.8), layout="constrained")
        FigureCanvasAgg(canvas)
        churn, usage = canvas.subplots(1, 2, width_ratios=(3, 2))
        for at, (variant, runs) in enumerate(watched.items()):
            _churn(churn, runs, variant, PALETTE[at])
            usage.barh(at, 100 * mean(_busiest(run) for run in runs), color=PALETTE[at])
        churn.set_xlabel("epochs with several experts")
        churn.set_ylabel("images that change expert, %")
        churn.set_ylim(0)
        churn.legend(frameon=False)
        usage.set_yticks([])
        usage.invert_yaxis()
        usage.set_xlim(0, 100)
        usage.set_xlabel("images of the busiest expert, %")
        path.parent.mkdir(parents=True, exist_ok=True)
        canvas.savefig(path, metadata={"Date": None})


def _watched(judgement: Judgement) -> dict[str, list[Run]]:
    """The variants whose records tell of churn, with the seeds that all of them have."""
    runs = {v: [run for run in judgement.of(v) if not run.failed and _churns(run)] for v in judgement.claim.variants}
    runs = {variant: of_variant for variant, of_variant in runs.items() if of_variant}
    shared = set.intersection(*({run.seed for run in of_variant} for of_variant in runs.values())) if runs else set()
    return {variant: [run for run in found if run.seed in shared] for variant, found in runs.items() if shared}


def _churns(run: Run) -> list[float]:
    """Percent, in every epoch that knows it, over the phases with several experts."""
    return [100 * epoch["churn"] for phase in run.phases for epoch in phase["epochs"] if "churn" in epoch]


def _churn(axes: Axes, runs: list[Run], variant: str, colour: str) -> None:
    every = [_churns(run) for run in runs]
    for churns in every:
        axes.plot(range(1, len(churns) + 1), churns, color=colour, linewidth=0.5, alpha=0.4)
    means = [mean(of_epoch) for of_epoch in zip(*every, strict=True)]
    axes.plot(range(1, len(means) + 1), means, color=colour, label=variant)


def _busiest(run: Run) -> float:
    """The share of the images that the busiest expert takes, the mean over the layers of the finished network."""
    return mean(max(shares) for shares in run.phases[-1]["usage"].values())
