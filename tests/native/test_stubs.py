"""The types of the native module are those of the module as built."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMMITTED = ROOT / "src" / "ebnet" / "_native"


def test_stubs_are_those_of_the_module() -> None:
    pytest.importorskip("nanobind", reason="the stubs are written by nanobind")
    made = runpy.run_path(str(ROOT / "native" / "python" / "stubs.py"))["stubs"]()
    assert {"__init__.pyi", "kernels.pyi", "train.pyi"} <= set(made)
    kept = {path.name: path.read_text() for path in COMMITTED.iterdir()}
    assert kept == made, "the bindings have changed: run `make stubs`"
