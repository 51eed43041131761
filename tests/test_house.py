"""The rules of the house: what may import what, and how fast the door opens."""

import ast
import resource
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "ebnet"
LEVEL = {
    "errors": 0,
    "files": 0,
    "images": 0,
    "processes": 0,
    "_native": 0,
    "arch": 0,
    "zoo": 1,
    "nn": 1,
    "models": 2,
    "runtime": 2,
    "data": 2,
    "cost": 3,
    "pack": 3,
}
LEVEL |= {"train": 3, "search": 4, "report": 4, "serve": 4, "reproduce": 4, "cli": 5}
TORCH_FREE = ["ebnet", "ebnet.arch", "ebnet.cost", "ebnet.models.layout", "ebnet.runtime", "ebnet.cli.app"]


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("ebnet."):
            found.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            found |= {n.name.split(".")[1] for n in node.names if n.name.startswith("ebnet.")}
    return found


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_one_way(path: Path) -> None:
    room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    if room in ("__init__", "__main__"):
        return
    for other in imports(path):
        assert LEVEL[other] <= LEVEL[room], f"{room} imports {other}"


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
