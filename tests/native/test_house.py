"""The rules of the native house: which folder may include which, and how long a file may be."""

import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

NATIVE = Path(__file__).resolve().parents[2] / "native"
MAY_INCLUDE: dict[str, set[str]] = {
    "include": set(),
    "base": set(),
    "bits": {"base"},
    "bconv": {"base", "bits"},
    "dense": {"base"},
    "train": {"base"},
    "engine": {"base", "bits", "bconv", "dense", "include"},
    "python": {"base", "bits", "bconv", "dense", "train", "engine"},
    "web": {"engine"},
    "fuzz": {"engine"},
    "tests": {"base", "bconv", "dense", "train", "engine", "include"},
}
"""A folder's own files aside. Kernels know neither each other nor the engine; nobody includes a test."""
FILES = sorted(path for path in NATIVE.rglob("*") if path.suffix in (".h", ".cpp", ".c"))


def included(path: Path) -> set[str]:
    """The folders of the project's files that a file includes; those of include/ are named without one."""
    names = re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(), re.MULTILINE)
    return {name.split("/")[0] if "/" in name else "include" for name in names}


def test_every_folder_has_its_line() -> None:
    assert {path.relative_to(NATIVE).parts[0] for path in FILES} == set(MAY_INCLUDE)


def test_allowed_includes_form_no_cycle() -> None:
    order = list(TopologicalSorter(MAY_INCLUDE).static_order())  # raises CycleError
    assert set(order) == set(MAY_INCLUDE)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(NATIVE)))
def test_includes_point_one_way(path: Path) -> None:
    folder = path.relative_to(NATIVE).parts[0]
    assert included(path) <= MAY_INCLUDE[folder] | {folder}


def test_every_allowed_include_is_used() -> None:
    used = {folder: set[str]() for folder in MAY_INCLUDE}
    for path in FILES:
        folder = path.relative_to(NATIVE).parts[0]
        used[folder] |= included(path) - {folder}
    assert used == MAY_INCLUDE


def test_files_are_short() -> None:
    lines = {str(path.relative_to(NATIVE)): len(path.read_text().splitlines()) for path in FILES}
    assert {name: count for name, count in lines.items() if count > 350} == {}
