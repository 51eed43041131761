"""`docs/comparison.md` from the records: every number in it is one of a record, or counted."""

from importlib.resources import files

from ebnet.compare.contest import Contest
from ebnet.compare.standings import Standing
from ebnet.compare.tables import COLUMNS, cells

FIGURE = "comparison.svg"
"""Beside the page, in figures/."""


def page(contest: Contest, rows: list[Standing]) -> str:
    """The set-up, then the standings; or, before there are records, the networks that are to be trained."""
    text = (files("ebnet") / "compare" / "text" / "head.md").read_text(encoding="utf-8")
    parts = [text.strip(), "## Standings", _state(contest, rows)]
    parts.append("\n".join([_line(COLUMNS), "|" + "---|" * len(COLUMNS), *(_row(row) for row in rows)]))
    if any(row.top1 for row in rows):
        parts.append(f"![top-1 of every method, seed by seed](figures/{FIGURE})")
    parts += [f"{row.contestant} broke down: {row.broken}." for row in rows if row.broken]
    return "\n\n".join(parts) + "\n"


def _row(row: Standing) -> str:
    method, arch, *others = cells(row)
    return _line((f"`{method}`", f"`{arch}`", *others))


def _line(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


def _state(contest: Contest, rows: list[Standing]) -> str:
    seeds = len(next((row.top1 for row in rows if row.top1), {}))
    if seeds == 0:
        return (
            f"Not run yet. These are the networks of equal {contest.equal} that the command above trains; what they "
            "reach is not known."
        )
    hours = sum(row.seconds for row in rows) / 3600
    return (
        f"{seeds} paired seeds, equal {contest.equal}, {hours:.1f} hours of training steps on one core each. Mean and "
        "standard error over the seeds; rank 1 is best of its seed; `behind` is in points, paired with the best mean."
    )
