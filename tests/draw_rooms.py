"""The drawing and the table of the rooms in docs/architecture.md, from the list of allowed imports.

python -m tests.draw_rooms        # after the list in tests/test_house.py has changed
"""

from collections.abc import Mapping
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"
PAGE, FIGURE = DOCS / "architecture.md", DOCS / "figures" / "rooms.svg"
START, END = "<!-- rooms: written by tests/draw_rooms.py -->\n", "<!-- end of rooms -->\n"
BASE = ("errors", "lazy", "names", "files", "images", "processes", "_native")
"""What nearly every room stands on: one band below the drawing, without lines."""
WIDTH, HEIGHT, GAP, ROW, STEP = 84, 30, 14, 64, 100
COLUMN = {"cli": 3, "reproduce": 1.5, "demo": 3, "publish": 4, "bulk": 5, "serve": 6, "report": 2.25, "search": 2.75}
COLUMN |= {"train": 1, "cost": 3, "packing": 4, "data": 0, "runs": 1.5, "runtime": 4.5, "recipe": 1.5, "zoo": 4.5}
COLUMN |= {"models": 2.5, "nn": 2.5, "arch": 2.5, "web": 6}
"""Where a room stands from left to right, so that no line goes behind another room; others at the right end."""


def edges(allowed: Mapping[str, str]) -> dict[str, set[str]]:
    return {room: set(others.split()) - set(BASE) for room, others in allowed.items() if room not in BASE}


def reduced(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """Without the edges that a longer way implies: what is left is the order of the rooms, and can be drawn."""
    below: dict[str, set[str]] = {}
    for room, others in graph.items():  # each room comes after those it stands on
        below[room] = others.union(*(below[other] for other in others))
    return {room: {o for o in others if not any(o in below[p] for p in others)} for room, others in graph.items()}


def levels(graph: dict[str, set[str]]) -> dict[str, int]:
    """Rows from the top: each room right below the lowest of those that import it, so that lines are short."""
    row: dict[str, int] = {}
    for room in reversed(graph):  # each room comes before those that import it
        row[room] = 1 + max((row[other] for other in graph if room in graph[other]), default=-1)
    return row


def drawing(allowed: Mapping[str, str]) -> str:
    """As SVG: a room stands above all that it may import."""
    graph = edges(allowed)
    row = levels(graph)
    middle = {room: 60 + STEP * COLUMN.get(room, 7.0) for room in graph}
    width, bottom = max(middle.values()) + 60, (max(row.values()) + 1) * ROW
    lines = [
        f'<line x1="{middle[room]:.0f}" y1="{row[room] * ROW + GAP + HEIGHT}" x2="{middle[o]:.0f}" '
        f'y2="{row[o] * ROW + GAP}" stroke="#8a94a6" stroke-width="1.2"/>'
        for room, others in reduced(graph).items()
        for o in sorted(others)
    ]
    boxes = [_box(x, row[room] * ROW + GAP, WIDTH, room) for room, x in middle.items()]
    boxes.append(_box(width / 2, bottom, width - 2 * GAP, ", ".join(BASE)))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {bottom + HEIGHT + GAP}" role="img"'
    style = ' font-family="sans-serif" font-size="13">'
    title = "<title>Each room stands above the rooms that it imports</title>"
    return "\n".join([head + style, title, *lines, *boxes, "</svg>"]) + "\n"


def _box(x: float, y: float, width: float, text: str) -> str:
    corner = f'x="{x - width / 2:.0f}" y="{y:.0f}" width="{width:.0f}" height="{HEIGHT}"'
    return (
        f'<rect {corner} rx="4" fill="#eef1f8" stroke="#3f51b5"/>'
        f'<text x="{x:.0f}" y="{y + 20:.0f}" text-anchor="middle" fill="#1a2340">{text}</text>'
    )


def table(allowed: Mapping[str, str]) -> str:
    rows = [f"| `{room}` | {others or 'nothing'} |" for room, others in allowed.items()]
    return "\n".join(["| room | may import |", "|---|---|", *rows]) + "\n"


def page(allowed: Mapping[str, str], text: str) -> str:
    """The page with the table of this list in its place."""
    before, _, rest = text.partition(START)
    return f"{before}{START}\n{table(allowed)}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    from tests.test_house import ALLOWED

    FIGURE.write_text(drawing(ALLOWED))
    PAGE.write_text(page(ALLOWED, PAGE.read_text()))
