"""`ebnet train` and `ebnet eval` as a user meets them."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ebnet.cli.app import app
from ebnet.errors import ConfigError
from ebnet.recipe.settings import parse_recipe, recipe_names
from ebnet.recipe.text import read_toml
from tests.train.tiny import write_recipe

runner = CliRunner()


def _ebnet(*arguments: str) -> str:
    result = runner.invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_recipes_are_listed_and_shown() -> None:
    listed = _ebnet("train", "--list")
    assert all(name in listed for name in recipe_names())
    assert list(json.loads(_ebnet("train", "--list", "--json"))) == recipe_names()
    shown = _ebnet("train", "imagenet", "--show", "--set", "network.experts=8")
    assert parse_recipe(read_toml(shown, "shown")).network.experts == 8


def test_train_then_eval(tmp_path: Path) -> None:
    recipe = write_recipe(tmp_path / "tiny.toml", schedule__epochs=1, log__log_steps=50)
    out = str(tmp_path / "run")
    table = _ebnet("train", str(recipe), "--out", out)
    assert "images/s" in table
    assert "Stage I, one expert" in table
    result = json.loads(_ebnet("train", str(recipe), "--out", out, "--json"))
    judged = json.loads(_ebnet("eval", out, "--json"))
    assert judged["stage"] == "stage2"
    assert judged["top1"] == result["stages"]["stage2"]["top1"]
    assert "teacher: top-1" in _ebnet("eval", out, "--stage", "teacher", "--best")
    with pytest.raises(ConfigError, match="did you mean stage2"):
        _ebnet("eval", out, "--stage", "stage-2")
    other = str(tmp_path / "other")
    taken = f"teacher={out}/stages/0-teacher"
    result = json.loads(
        _ebnet(
            "train",
            str(recipe),
            "--out",
            other,
            "--take",
            taken,
            "--set",
            'stages=["teacher"]',
            "--set",
            "stage={}",
            "--json",
        )
    )
    assert result["stages"]["teacher"]["source"].endswith("0-teacher")


def test_no_recipe_is_answered_with_the_list_command() -> None:
    result = runner.invoke(app, ["train"])
    assert result.exit_code == 2
    assert "ebnet train --list" in result.output
