"""What the results open with: accuracy against bytes and against milliseconds, and a sentence for what shows.

The networks are those of the claims about experts and about width; only what has records is drawn.
"""

from dataclasses import dataclass
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ebnet.models.config import NetworkConfig
from ebnet.report.figure import PALETTE
from ebnet.report.plots import STYLE
from ebnet.reproduce.claim import load_claim
from ebnet.reproduce.engine_times import measure, read_times
from ebnet.reproduce.records import Records
from ebnet.reproduce.tables import Summary, points_told
from ebnet.reproduce.verdict import judge, uncertainty
from ebnet.reproduce.words import DOES_NOT_SHOW, SHOWS, UNDECIDED

FIGURE = "results-opening.svg"
CLAIMS = ("experts", "expansion")
CLASSES, CHANNELS = 10, 3
"""Of CIFAR-10."""


@dataclass(frozen=True)
class Shown:
    """A variant of a claim and how it is drawn: which line, what is written beside it."""

    claim: str
    variant: str
    expansion: int
    experts: int
    shorter: bool = False
    """Trained a phase less than the others: its mark is hollow and on no line."""

    @property
    def config(self) -> NetworkConfig:
        claim = load_claim(self.claim)
        network = claim.recipe_of(self.variant, claim.first_seed).network
        return network.config(CLASSES, CHANNELS, network.experts)


SHOWN = (
    Shown("experts", "1 expert", 1, 1),
    Shown("experts", "4 experts", 1, 4),
    Shown("experts", "8 experts", 1, 8),
    Shown("expansion", "E=2, 4 experts", 2, 4),
    Shown("expansion", "E=1", 1, 1, shorter=True),
    Shown("expansion", "E=2", 2, 1, shorter=True),
)


@dataclass(frozen=True)
class Point:
    """What a variant reached: top-1 of Stage II in percent, seed by seed."""

    shown: Shown
    kilobytes: float
    top1: list[float]

    @property
    def mean(self) -> float:
        return sum(self.top1) / len(self.top1)

    @property
    def margin(self) -> float:
        """How far the mean may be off, by the rule of the verdicts; nothing is known of a single seed."""
        return uncertainty(self.top1) if len(self.top1) > 1 else 0.0


def points(records: Records) -> list[Point]:
    """Of the variants that have records, in the order of `SHOWN`."""
    judgements = {name: judge(load_claim(name), records) for name in CLAIMS}
    found = []
    for shown in SHOWN:
        runs = [run for run in judgements[shown.claim].of(shown.variant) if not run.failed]
        if runs:
            reached = [100 * run.phases[-1]["top1"] for run in runs]
            found.append(Point(shown, runs[0].phases[-1]["cost"]["bytes_fp16"] / 1e3, reached))
    return found


def measure_shown(results: Path) -> Path:
    """The engine's times of all networks that may be drawn, into the file that is returned."""
    configs = list(dict.fromkeys(shown.config for shown in SHOWN))
    return measure(configs, load_claim(CLAIMS[0]).recipe_of(SHOWN[0].variant, 0).data.size, results)


def save_opening(found: list[Point], results: Path, path: Path) -> None:
    """Left against the size of the packed network, right against its time, where it was measured."""
    taken = read_times(results)
    timed = [(point, taken.of(point.shown.config)) for point in found] if taken else []
    with matplotlib.rc_context(STYLE):
        canvas = Figure(figsize=(8 if timed else 5, 3.4), layout="constrained")
        FigureCanvasAgg(canvas)
        panels = canvas.subplots(1, 2 if timed else 1, sharey=True, squeeze=False)[0]
        _panel(panels[0], [(point, point.kilobytes) for point in found], "kB packed, reals as fp16")
        panels[0].set_ylabel("top-1 on the validation images, %")
        panels[0].legend(frameon=False, fontsize=8, ncols=3, loc="lower left", bbox_to_anchor=(0, 1))
        if taken is not None:
            measured = [(point, time) for point, time in timed if time is not None]
            _panel(panels[1], measured, f"milliseconds in the engine, one image, one thread\n{taken.machine}")
        path.parent.mkdir(parents=True, exist_ok=True)
        canvas.savefig(path, metadata={"Date": None})


def _panel(axes: Axes, placed: list[tuple[Point, float]], label: str) -> None:
    for (expansion, shorter), colour in {(1, False): 0, (2, False): 1, (1, True): 0, (2, True): 1}.items():
        ours = [(p, x) for p, x in placed if (p.shown.expansion, p.shown.shorter) == (expansion, shorter)]
        if not ours:
            continue
        axes.errorbar(
            [x for _, x in ours],
            [point.mean for point, _ in ours],
            [point.margin for point, _ in ours],
            fmt="o" if shorter else "o-",
            color=PALETTE[colour],
            markerfacecolor="white" if shorter else None,
            linewidth=1,
            capsize=2,
            label=f"E = {expansion}" + (", a phase less" if shorter else ""),
        )
        for point, x in ours:
            count = point.shown.experts
            name = f"{count} expert{'' if count == 1 else 's'}"
            axes.annotate(name, (x, point.mean), (5, 4), textcoords="offset points", fontsize=7)
    axes.set_xlabel(label)
    axes.margins(x=0.15)
    axes.set_xlim(0)


def sentences(summaries: list[Summary]) -> str:
    """One for what shows at the end of Stage II, one for what does not, one for what is open; empty before any run.

    Of the trials of what holds experts and width back, what decides them.
    """
    found = [
        (finding["verdict"], f"{finding['what']}, {finding['way']} ({_points(finding)})")
        for claim in summaries
        for finding in claim["findings"]
        if claim["claim"] in CLAIMS or (claim["chapter"] == "why" and finding["decides"])
        if finding["by_seed"] and not finding["what"].endswith("Stage I")
    ]
    titles = {SHOWS: "What shows", DOES_NOT_SHOW: "What does not", UNDECIDED: "Undecided"}
    told = {title: [what for verdict, what in found if verdict == word] for word, title in titles.items()}
    return " ".join(f"**{title}**: {'; '.join(whats)}." for title, whats in told.items() if whats)


def _points(finding: Summary) -> str:
    return f"{points_told(finding['mean'], finding['standard_error'])} points"


def opening(records: Records, summaries: list[Summary], figures: str) -> str:
    """The figure, as Markdown, and what is to be said of it; empty where nothing has records."""
    found = points(records)
    if not found:
        return ""
    what = "Top-1 against bytes and milliseconds: 1, 4 and 8 experts, E = 1 and 2"
    seeds = sorted({len(point.top1) for point in found})
    count = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    drawn = (
        f"Means over {count} seeds, with how far they may be off. Hollow marks trained a phase less than the others."
    )
    missing = [shown.variant for shown in SHOWN if shown not in [point.shown for point in found]]
    drawn += f" Not run yet: {'; '.join(missing)}." if missing else ""
    return "\n\n".join(filter(None, (f"![{what}]({figures}/{FIGURE})", drawn, sentences(summaries))))
