"""The program as a whole: its version, what it says where an extra is missing, and how it ends."""

import os
import re
import subprocess
import sys
from importlib.metadata import version

import pytest

from ebnet.cli.app import EXTRAS, WHOLE
from ebnet.recipe.library import recipe_names

BARE = tuple(name for name in EXTRAS if name != "pydantic")
"""What the bare package lacks; some versions of typer bring pydantic."""


def ebnet(*words: str, without: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Run the program in a Python that lacks some packages."""
    hidden = f"import sys; sys.modules.update(dict.fromkeys({without!r})); sys.argv = ['ebnet', *{words!r}]"
    code = f"{hidden}; from ebnet.cli.app import main; main()"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=os.environ)


def test_version() -> None:
    assert ebnet("--version").stdout == f"ebnet {version('ebnet')}\n"


@pytest.mark.parametrize(
    ("command", "needs"),
    [
        ("train demo --out nowhere", "torch"),
        ("eval runs/x", "torch"),
        ("pack runs/x -o y.ebn", "torch"),
        ("verify net.ebn --against runs/x", "torch"),
        ("export-onnx runs/x -o y.onnx", "torch"),
        ("memory", "torch"),
        ("demo", "torch"),
        ("search show x", "optuna"),
        ("serve zoo:digits-e4", "uvicorn"),
    ],
)
def test_a_missing_extra_is_one_line(command: str, needs: str) -> None:
    outcome = ebnet(*command.split(), without=BARE)
    assert outcome.returncode == 1
    extra = WHOLE.get(command.split(maxsplit=1)[0], EXTRAS[needs])
    assert outcome.stderr == f'error: this command needs {needs}: pip install "ebnet[{extra}]"\n'


def test_a_command_that_needs_two_extras_names_both() -> None:
    assert ebnet("demo", without=BARE).stderr.endswith('pip install "ebnet[train,report]"\n')


DEVICE = ["inspect zoo:digits-e4 --json", "bench zoo:digits-e4 --seconds 0.01 --batch 1 --threads 1 --json"]
"""Beside `predict`, which tests/zoo runs without torch."""


@pytest.mark.parametrize(
    "command",
    [
        "summary 1111-0.25",
        "summary --paper",
        "train --list",
        "zoo card digits-e4",
        "search price --paper",
        "results",
        "reproduce --list --results nowhere",
        "reproduce short 1 --list --json --results nowhere",
        *DEVICE,
    ],
)
def test_what_needs_no_extra_works_without(command: str) -> None:
    outcome = ebnet(*command.split(), without=BARE)
    assert outcome.returncode == 0, outcome.stderr


def test_the_names_of_recipes_need_no_pydantic() -> None:
    code = "import sys; sys.modules['pydantic'] = None; import ebnet.recipe.library as l; print(len(l.descriptions()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) == len(recipe_names()) > 5


def test_a_recipe_without_pydantic_is_one_line() -> None:
    outcome = ebnet("train", "demo", "--show", without=("pydantic",))
    assert outcome.returncode == 1
    assert outcome.stderr == 'error: this command needs pydantic: pip install "ebnet[train]"\n'


@pytest.mark.parametrize("command", ["", "summary", "predict", "bench", "reproduce", "search", "search run", "zoo add"])
def test_help_shows_no_types_of_python(command: str) -> None:
    told = ebnet(*command.split(), "--help").stdout
    assert not re.search(r"list\[|<\w+( range)?>", told)
    assert "--help" in told
