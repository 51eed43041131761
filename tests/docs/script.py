"""Run a Python script as `python SCRIPT ARGUMENT...` would, but within this process, where torch is loaded already."""

import ast
import sys
from pathlib import Path
from types import ModuleType

import pytest


def run_script(script: Path, arguments: list[str], constants: dict[str, str]) -> None:
    """With other values for some constants at its top, where it would take minutes."""
    tree = with_constants(ast.parse(script.read_text(), str(script)), constants)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [str(script), *arguments])
        patch.syspath_prepend(str(script.resolve().parent))
        main = ModuleType("__main__", ast.get_docstring(tree))
        main.__file__ = str(script.resolve())
        patch.setitem(sys.modules, "__main__", main)  # where processes that the script starts look for its functions
        exec(compile(tree, str(script), "exec"), vars(main))


def with_constants(tree: ast.Module, constants: dict[str, str]) -> ast.Module:
    """A constant that the script does not have is an error, not passed over."""
    missing = set(constants)
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in missing:
            node.value = ast.parse(constants[node.targets[0].id], mode="eval").body
            missing.remove(node.targets[0].id)
    assert not missing, f"the script has no {', '.join(missing)}"
    return ast.fix_missing_locations(tree)
