"""Where a report's numbers come from: machine, date, versions, seed and command."""

from pathlib import Path
from typing import Any

from ebnet.machine import provenance
from ebnet.recipe.settings import Recipe
from ebnet.report.page import Section, Table
from ebnet.runs.starts import read_starts

UNKNOWN = "not recorded"


def origin(run: Path, recipe: Recipe, images: int | None, bench: dict[str, Any] | None) -> Section:
    """One table; a run that was stopped and went on has several starts, of which the first and the last are told."""
    starts, now = read_starts(run), provenance()
    first, last = (starts[0], starts[-1]) if starts else ({}, {})
    several = f" (and {len(starts) - 1} more starts, the last {last['date']})" if len(starts) > 1 else ""
    rows = [
        ["trained", first.get("date", UNKNOWN) + several],
        ["by the command", first.get("command", UNKNOWN)],
        ["on", first.get("machine", UNKNOWN)],
        ["with", first.get("versions", UNKNOWN)],
        ["recipe and seed", f"{recipe.name}, seed {recipe.seed}"],
        ["data", f"{recipe.data.name}" + (f", {images:,} validation images" if images else "")],
    ]
    if bench is not None:
        made = bench.get("made", {})
        rows += [["timed", made.get("date", UNKNOWN)], ["timed on", made.get("machine", UNKNOWN)]]
    rows.append(["report written", f"{now['date']}, {now['versions']}"])
    return Section("Origin", "What made the numbers of this report.", table=Table(["", ""], rows))
