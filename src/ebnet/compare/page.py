"""`docs/comparison.md` from the records: every number in it is one of a record, or counted."""

from importlib.resources import files

from ebnet.report.comparison import Summary, table, told_name


def page(summaries: list[Summary]) -> str:
    """The set-up, then the standings of each recipe and budget; or, before there are records, what is to be trained."""
    text = (files("ebnet") / "compare" / "text" / "head.md").read_text(encoding="utf-8")
    parts = [text.strip()]
    for summary in summaries:
        parts += [
            f"## Standings: `{summary['recipe']}`, equal {summary['equal']}",
            *summary["notes"][:1],
            _table(summary),
        ]
        if summary["seeds"]:
            parts.append(f"![top-1 of every method, seed by seed](figures/{figure_name(summary)})")
        parts += summary["notes"][1:]
    return "\n\n".join(parts) + "\n"


def figure_name(summary: Summary) -> str:
    """Beside the page, in figures/."""
    return f"{told_name(summary)}.svg"


def _table(summary: Summary) -> str:
    shown = table(summary)
    rows = [_line([f"`{method}`", *others]) for method, *others in shown.rows]
    return "\n".join([_line(list(shown.columns)), "|" + "---|" * len(shown.columns), *rows])


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
