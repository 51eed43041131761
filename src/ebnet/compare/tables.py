"""A comparison as a table: for the terminal, and for the page."""

from rich.box import SIMPLE
from rich.table import Table

from ebnet.compare.contest import Contest
from ebnet.compare.standings import Standing, told

COLUMNS = ("method", "network", "BOPs", "FLOPs", "kB", "top-1 %", "rank", "behind")


def cells(row: Standing) -> tuple[str, ...]:
    """Costs of one image, size with fp16 reals, and what was reached."""
    costs = (f"{row.cost['bops'] / 1e6:.2f}M", f"{row.cost['flops'] / 1e6:.2f}M", f"{row.cost['bytes_fp16'] / 1e3:.1f}")
    if row.broken:
        return row.contestant, row.arch, *costs, "broke down", "-", "-"
    return row.contestant, row.arch, *costs, _told(row.top1, 2), _told(row.ranks, 1), _told(row.behind, 2)


def standings_table(contest: Contest, rows: list[Standing]) -> Table:
    seeds = len(next((row.top1 for row in rows if row.top1), {}))
    title = f"{contest.recipe}, equal {contest.equal}, {seeds} paired seed{'' if seeds == 1 else 's'}"
    table = Table(title=title, box=SIMPLE, padding=(0, 1, 0, 0))
    for column in COLUMNS:
        is_text = column in ("method", "network")
        # Where the terminal is narrow the network's name is folded, and no number cut.
        table.add_column(column, justify="left" if is_text else "right", no_wrap=column != "network", overflow="fold")
    for row in rows:
        table.add_row(*cells(row))
    return table


def _told(values: dict[int, float], digits: int) -> str:
    found = told(values)
    if found is None:
        return "-"
    error = found["standard_error"]
    return f"{found['mean']:.{digits}f}" + ("" if error is None else f" ± {error:.{digits}f}")
