"""RUN/starts.jsonl: every start of a run: when, where, by which versions and by which command."""

import json
from pathlib import Path

from ebnet.files import explained
from ebnet.machine import provenance

STARTS = "starts.jsonl"


def note_start(run: Path) -> None:
    """One line more; a run that goes on after a stop has several."""
    path = run / STARTS
    with explained(path), path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(provenance()) + "\n")


def read_starts(run: Path) -> list[dict[str, str]]:
    """In order; none of a run that was made before they were kept. A line that was cut off is left out."""
    try:
        lines = (run / STARTS).read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return []
    starts = []
    for line in lines:
        try:
            starts.append({name: str(value) for name, value in json.loads(line).items()})
        except (ValueError, AttributeError):
            continue
    return starts
