"""A comparison as a table for the terminal."""

import rich.table
from rich.box import SIMPLE

from ebnet.report.comparison import Summary, table


def standings_table(summary: Summary) -> rich.table.Table:
    shown = table(summary)
    seeds = summary["seeds"]
    title = f"{summary['recipe']}, equal {summary['equal']}, {seeds} paired seed{'' if seeds == 1 else 's'}"
    drawn = rich.table.Table(title=title, box=SIMPLE, padding=(0, 1, 0, 0))
    for at, column in enumerate(shown.columns):
        # A mean and its error may stand below each other where the terminal is narrow; no number is cut.
        breaks = any(" ± " in row[at] for row in shown.rows)
        drawn.add_column(column, justify="left" if column == "method" else "right", no_wrap=not breaks)
    for row in shown.rows:
        drawn.add_row(*row)
    return drawn
