"""Commands on a device that has the bare package, or one that lacks an extra."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ebnet.cli.app import EXTRAS
from ebnet.recipe.library import recipe_names

BARE = [name for name in EXTRAS if name != "pydantic"]
"""Some versions of typer, which the bare package has, bring pydantic."""


def bare(*words: str, lacks: list[str] = BARE) -> "subprocess.CompletedProcess[str]":
    code = f"import sys; sys.modules.update(dict.fromkeys({lacks})); from ebnet.cli.app import main; main()"
    return subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "words",
    [
        ("inspect", "zoo:digits-e4", "--json"),
        ("bench", "zoo:digits-e4", "--seconds", "0.01", "--batch", "1", "--threads", "1", "--json"),
        ("summary", "1262-2-4:8:8:16", "--json"),
        ("zoo", "--json"),
        ("train", "--list", "--json"),
    ],
    ids=lambda words: words[0],
)
def test_a_device_needs_no_extra(words: tuple[str, ...]) -> None:
    done = bare(*words)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)


def test_the_names_of_recipes_need_no_pydantic() -> None:
    code = "import sys; sys.modules['pydantic'] = None; import ebnet.recipe.library as l; print(len(l.descriptions()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) == len(recipe_names()) > 5


def test_predict_needs_no_extra(tmp_path: Path) -> None:
    from PIL import Image

    Image.new("L", (28, 28)).save(tmp_path / "dark.png")
    done = bare("predict", "zoo:digits-e4", str(tmp_path / "dark.png"), "--json")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)) == 1


@pytest.mark.parametrize(
    ("words", "lacks", "extra"),
    [
        (("train", "demo", "--show"), "pydantic", "train"),
        (("eval", "zoo:digits-e4"), "torch", "train"),
        (("serve", "zoo:digits-e4"), "fastapi", "serve"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_what_is_lacking_is_said_in_one_line(words: tuple[str, ...], lacks: str, extra: str) -> None:
    done = bare(*words, lacks=[lacks])
    assert done.returncode == 1
    assert done.stderr == f'error: this command needs {lacks}: pip install "ebnet[{extra}]"\n'
