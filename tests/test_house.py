"""The rules of the house: what may import what, and how fast the door opens."""

import ast
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests import draw_rooms

SOURCE = Path(__file__).parent.parent / "src" / "ebnet"
ALLOWED = {
    "errors": "",
    "processes": "",
    "_native": "",
    "files": "errors",
    "arch": "errors",
    "names": "",
    "lazy": "",
    "machine": "",
    "images": "errors",
    "zoo": "errors",
    "data": "errors _native images",
    "nn": "errors arch _native",
    "models": "errors names files arch nn",
    "cost": "errors names arch nn models",
    "recipe": "errors lazy arch models",
    "runs": "errors machine names files nn models recipe",
    "runtime": "errors machine names images _native zoo",
    "bulk": "errors files runtime",
    "packing": "errors files nn models runs runtime zoo",
    "train": "errors images lazy names data nn models recipe runs packing",
    "publish": "errors files cost recipe runs train packing runtime zoo",
    "search": "errors machine lazy files arch nn models cost recipe runs train packing runtime",
    "report": "errors machine names files models cost recipe runs train search",
    "reproduce": "errors lazy machine files processes data models cost recipe runs train search report",
    "compare": "errors files arch models cost recipe runs search report reproduce",
    "web": "errors files runtime",
    "serve": "errors runtime web",
    "demo": "files data nn models cost recipe runs train packing runtime report",
    "cli": "errors names files processes data models cost recipe train bulk packing runtime publish zoo search "
    "report reproduce compare web serve demo",
}
"""Each room, and the rooms it may import: in this order none stands on a later one."""
DOORS = ("__init__", "__main__")
"""Not rooms: the public names, and the way into the command line."""
TORCH_FREE = ["ebnet", "ebnet.arch", "ebnet.cost", "ebnet.recipe.settings", "ebnet.models.layout", "ebnet.cli.app"]
TORCH_FREE += ["ebnet.runtime.engine", "ebnet.runtime.inspect", "ebnet.runtime.bench", "ebnet.serve.app", "ebnet.bulk"]
TORCH_FREE += ["ebnet.web.site", "ebnet.web.live"]


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "ebnet":
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("ebnet."):
            found.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            found |= {name.name.split(".")[1] for name in node.names if name.name.startswith("ebnet.")}
    return found


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def test_no_room_stands_on_a_later_one() -> None:
    rooms = list(ALLOWED)
    for number, room in enumerate(rooms):
        assert set(ALLOWED[room].split()) <= set(rooms[:number]), room


def test_every_import_is_on_the_list() -> None:
    found: dict[str, set[str]] = {}
    for path in SOURCE.rglob("*.py"):
        found.setdefault(room_of(path), set()).update(imports(path) - {room_of(path)})
    for door in DOORS:
        found.pop(door)
    assert set(found) == set(ALLOWED) - {"_native"}
    for room, others in found.items():
        assert others == set(ALLOWED[room].split()), f"{room}: put what it imports, no more and no less, on the list"


def test_the_page_shows_the_list() -> None:
    """`python -m tests.draw_rooms` writes it."""
    assert draw_rooms.FIGURE.read_text() == draw_rooms.drawing(ALLOWED)
    assert draw_rooms.page(ALLOWED, draw_rooms.PAGE.read_text()) == draw_rooms.PAGE.read_text()


@pytest.mark.parametrize("module", TORCH_FREE)
def test_works_without_torch(module: str) -> None:
    code = f"import sys; sys.modules['torch'] = None; import {module}"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_import_and_help_are_fast() -> None:
    """By processor time, which other work on the machine does not stretch."""

    def seconds(*command: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(seconds("-c", "import ebnet") for _ in range(3)) < 0.5
    assert min(seconds("-m", "ebnet", "--help") for _ in range(3)) < 0.5


def test_every_public_name_resolves() -> None:
    import ebnet

    for name in ebnet.__all__:
        assert getattr(ebnet, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = ebnet.nothing
