"""The report of a comparison: the standings that `ebnet compare` wrote beside its records."""

from pathlib import Path
from typing import Any

from ebnet.errors import ConfigError
from ebnet.files import read_json
from ebnet.report.figure import Colouring, Figure, Scatter, Series, Strips
from ebnet.report.page import Report, Section, Table
from ebnet.search.pareto import undominated

STANDINGS = "standings"
"""The directory beside the records: a file for each recipe and budget."""
COLUMNS = ("method", "channels", "BOPs", "FLOPs", "kB", "ms", "top-1 %", "rank", "behind")

Summary = dict[str, Any]
"""What a file holds: recipe, equal, set, seeds, left_out, notes, and standings, best first."""


def comparison_report(path: Path) -> Report:
    """Of all budgets and recipes that were compared with records in one directory."""
    found = read_summaries(path)
    facts = [fact for summary in found for fact in _facts(summary)]
    methods = {row["method"] for summary in found for row in summary["standings"]}
    subtitle = f"{len(methods)} methods, each under one recipe, one budget and paired seeds; records in {path}"
    return Report("Methods side by side", subtitle, facts, [_section(summary) for summary in found])


def read_summaries(results: Path) -> list[Summary]:
    """Of a directory of results, by recipe and budget."""
    found = [_read(file) for file in (results / STANDINGS).glob("*.json")]
    return sorted(found, key=lambda summary: (summary["recipe"], summary["equal"] != "ops", summary["equal"]))


def strips(summary: Summary) -> Strips:
    """Every contestant that has accuracies: a dot a seed, best first."""
    rows = _ranked(summary)
    return Strips(
        f"{told_name(summary)}-top1",
        f"Top-1 of every method, equal {summary['equal']}",
        "A dot is a seed, the mark their mean, the line its standard error. Best mean first.",
        [row["method"] for row in rows],
        [
            Series(
                "seed",
                list(row["top1_by_seed"].values()),
                [f"{row['method']}, seed {seed}\ntop-1 {value:.2f} %" for seed, value in row["top1_by_seed"].items()],
            )
            for row in rows
        ],
        [row["top1"]["standard_error"] or 0.0 for row in rows],
        [plus_minus(row["top1"], 2) for row in rows],
        "top-1 on the validation images, %",
    )


def table(summary: Summary) -> Table:
    """The standings: costs of one image, size with fp16 reals, what was reached. Times, where they were measured."""
    rows = [_cells(row) for row in summary["standings"]]
    shown = [i for i, name in enumerate(COLUMNS) if name != "ms" or any(row[i] != "-" for row in rows)]
    return Table([COLUMNS[i] for i in shown], [[row[i] for i in shown] for row in rows])


def plus_minus(values: dict[str, float | None] | None, digits: int) -> str:
    """A mean with its standard error, where there are several seeds."""
    if values is None:
        return "-"
    error = values["standard_error"]
    return f"{values['mean']:.{digits}f}" + ("" if error is None else f" ± {error:.{digits}f}")


def plain(note: str) -> str:
    """A note of a summary without Markdown's marks."""
    return note.replace("`", "").replace("**", "")


def told_name(summary: Summary) -> str:
    """The file of a summary, without its ending."""
    return f"{Path(summary['recipe']).stem}-{summary['equal']}"


def _read(file: Path) -> Summary:
    summary = read_json(file, "the standings of a comparison", ConfigError, "`ebnet compare` writes it")
    rows = summary.get("standings") if isinstance(summary, dict) else None
    if rows is None or not all(row.keys() >= {"channels", "milliseconds"} for row in rows):
        raise ConfigError(f"{file} is not the standings of a comparison; `ebnet compare` writes it anew")
    return summary


def _cells(row: dict[str, Any]) -> list[str]:
    """In the order of `COLUMNS`; channels of the first stage, since all networks have the recipe's proportions."""
    cost, taken = row["cost"], row["milliseconds"]
    costs = [f"{cost['bops'] / 1e6:.2f}M", f"{cost['flops'] / 1e6:.2f}M", f"{cost['bytes_fp16'] / 1e3:.1f}"]
    costs.append("-" if taken is None else f"{taken:.3f}")
    start = [row["method"], str(row["channels"][0]), *costs]
    if row["broken"]:
        return [*start, "broke down", "-", "-"]
    reached = [plus_minus(row["top1"], 2), plus_minus(row["rank"], 1), plus_minus(row["behind_the_best"], 2)]
    return [*start, *reached]


def _ranked(summary: Summary) -> list[dict[str, Any]]:
    return [row for row in summary["standings"] if row["top1_by_seed"]]


def _facts(summary: Summary) -> list[tuple[str, str]]:
    ranked = _ranked(summary)
    where = f"{summary['recipe']}, equal {summary['equal']}"
    if not ranked:
        return [("not run yet", where)]
    best = ranked[0]
    return [(f"{best['method']}: {plus_minus(best['top1'], 1)} %", f"the best mean of {len(ranked)}, {where}")]


def _section(summary: Summary) -> Section:
    figures: list[Figure] = [strips(summary), _against(summary)] if _ranked(summary) else []
    title = f"{summary['recipe']}, equal {summary['equal']}"
    return Section(title, plain(" ".join(summary["notes"])), figures, table(summary))


def _against(summary: Summary) -> Scatter:
    """Accuracy against a cost that was not made equal: size, or operations where size was."""
    name, title, unit = ("ops", "BOPs / 64 + FLOPs", 1.0) if summary["equal"] == "bytes" else ("bytes_fp16", "kB", 1e3)
    rows = _ranked(summary)
    x, y = [row["cost"][name] / unit for row in rows], [row["top1"]["mean"] for row in rows]
    front = [i for i, kept in enumerate(undominated(list(zip(y, x, strict=True)))) if kept]
    return Scatter(
        f"{told_name(summary)}-cost",
        f"Top-1 against {title}",
        "Up and to the left is better; the dashed line joins methods that no other beats in both.",
        x,
        y,
        ["\n".join((f"{row['method']}, {row['arch']}", f"top-1 {plus_minus(row['top1'], 2)} %")) for row in rows],
        [Colouring("standing", [int(i in front) for i in range(len(rows))], ["method", "on the front"])],
        title,
        "top-1 %",
        front=sorted(front, key=lambda i: x[i]),
    )
