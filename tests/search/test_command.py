"""`ebnet search` from the first word to the winner's recipe, with real training on generated pictures."""

import json
import tomllib

import pytest
from typer.testing import CliRunner

from ebnet.cli.app import app
from ebnet.errors import ConfigError, EbnetError, StudyError
from ebnet.recipe.settings import load_recipe
from ebnet.search.candidate import Candidate
from ebnet.search.directory import open_study
from ebnet.search.reduced import full_recipe, reduced_recipe

RECIPE = """
name = "stripes"
[data]
name = "generated"
size = 16
[network]
arch = "1111-0.125-1:1:1:1"
experts = 2
[schedule]
epochs = 10
batch_size = 200
learning_rate = 3e-3
milestones = [6]
[stage.stage2]
weight_decay = 0.0
distill_from = "teacher"
"""
SMALL = ["--per-direction", "1", "--combinations", "1", "--max-blocks", "2", "--groups", "1,2", "--epochs", "1"]


def run(*arguments: object):
    result = CliRunner().invoke(app, ["search", *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    path = tmp_path_factory.mktemp("recipe") / "stripes.toml"
    path.write_text(RECIPE)
    return path


@pytest.fixture(scope="module")
def finished(recipe, tmp_path_factory):
    """A whole search, by the short form of the command."""
    directory = tmp_path_factory.mktemp("search") / "study"
    result = run(recipe, "--budget", "bops=3e5", "--out", directory, *SMALL, "--json")
    assert result.exit_code == 0, result.output
    return directory, json.loads(result.stdout)


def test_a_search_trains_only_what_fits_and_its_winner_is_on_the_front(finished):
    directory, found = finished
    assert found["finished"]
    trained = [c for c in found["candidates"] if c["state"] == "trained"]
    assert len(trained) >= 5
    assert all(c["bops"] <= 3e5 for c in trained)
    assert found["winner"]["on_front"]
    assert found["winner"]["accuracy"] == max(c["accuracy"] for c in trained)
    runs = {path.name for path in (directory / "candidates").iterdir()}
    assert len(runs) == len(trained)
    assert not list((directory / "candidates").glob("*/stages")), "checkpoints of judged candidates should be gone"


def test_the_same_seed_gives_the_same_study(recipe, finished, tmp_path):
    again = run("run", recipe, "--budget", "bops=3e5", "--out", tmp_path / "study", *SMALL, "--json")
    pairs = [
        {c["candidate"]: c["accuracy"] for c in found["candidates"]}
        for found in (finished[1], json.loads(again.stdout))
    ]
    assert pairs[0] == pairs[1]


def test_show_tells_and_draws(finished, tmp_path):
    directory, found = finished
    result = run("show", directory, "--figures", tmp_path / "figures")
    assert found["winner"]["candidate"] in result.stdout
    assert "winner" in result.stdout
    assert "combination" in result.stdout
    drawn = {path.name: path.stat().st_size for path in (tmp_path / "figures").iterdir()}
    assert set(drawn) == {f"{n}.{k}" for n in ("pareto", "constellations", "payoff") for k in ("png", "svg")}
    assert min(drawn.values()) > 5000
    assert json.loads(run("show", directory, "--json").stdout) == found


def test_a_worker_that_joins_a_finished_study_leaves_again(finished):
    directory, found = finished
    assert run("worker", directory).exit_code == 0
    assert json.loads(run("show", directory, "--json").stdout) == found


def test_the_winner_becomes_a_full_recipe(finished, tmp_path):
    directory, found = finished
    run("recipe", directory, "-o", tmp_path / "winner.toml")
    winner = load_recipe(tmp_path / "winner.toml")
    assert winner.network.arch == found["winner"]["arch"]
    assert winner.network.experts == 2
    assert winner.schedule.epochs == 10
    assert len(winner.stages) == 4
    assert winner.table("stage2").distill_from == "teacher"
    other = next(c for c in found["candidates"] if c["candidate"] != found["winner"]["candidate"])
    run("recipe", directory, "-o", tmp_path / "other.toml", "--candidate", other["candidate"])
    assert tomllib.loads((tmp_path / "other.toml").read_text())["network"]["arch"] == other["arch"]
    with pytest.raises(StudyError, match="no candidate"):
        run("recipe", directory, "-o", tmp_path / "none.toml", "--candidate", "8888-1-1:1:1:1")


def test_an_extended_study_goes_on(recipe, tmp_path):
    run(recipe, "--budget", "bops=3e5", "--out", tmp_path / "s", *SMALL, "--directions", "depth,width", "--rounds", "1")
    result = run("extend", tmp_path / "s", "--budget", "bops=6e5", "--json")
    found = json.loads(result.stdout)
    assert found["finished"]
    assert found["budgets"] == ["bops=600000"]
    assert len(found["phases"]) == 4


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (["--budget", "bops=10"], ConfigError, "no network within bops=10"),
        (["--budget", "speed=10"], ConfigError, "expected one of bops=NUMBER"),
        (["--budget", "bops=fast"], ConfigError, "'fast' is not a number"),
        (["--budget", "bops=-1"], ConfigError, "must be a positive number"),
        (["--budget", "bops=nan"], ConfigError, "must be a positive number"),
        (["--budget", "bops=1e6", "--budget", "bops=2e6"], ConfigError, "give each cost one limit"),
        (["--base", "1111-0.125-3:1:1:1"], EbnetError, "groups"),
        (["--directions", "depth,sideways"], ConfigError, "sideways"),
        (["--groups", "1,many"], ConfigError, "--groups 1,many"),
        (["--set", "schedule.epocs=3"], ConfigError, "did you mean"),
        (["--set", "data.name=nothing"], EbnetError, "nothing"),
        (["--storage", "postgresql://me@127.0.0.1:1/x"], StudyError, "cannot be used"),
    ],
)
def test_mistakes_are_found_before_any_training(recipe, tmp_path, arguments, error, message):
    with pytest.raises(error, match=message):
        run(recipe, "--yes", "--out", tmp_path / "study", *SMALL, *arguments)
    assert not (tmp_path / "study").exists()


def test_what_is_neither_command_nor_recipe_is_named(tmp_path):
    with pytest.raises(ConfigError, match="shwo: neither a file nor a shipped recipe"):
        run("shwo", "--out", tmp_path / "study")


def test_help_teaches():
    text = run("--help").stdout
    for command in ("run", "worker", "show", "extend", "recipe", "price"):
        assert command in text
        assert "xample" in run(command, "--help").stdout


def test_the_papers_networks_are_priced():
    rows = json.loads(run("price", "--paper", "--json").stdout)
    assert len(rows) == 52
    printed = [row for row in rows if row["printed_bops"]]
    assert len(printed) == 9
    for row in printed:
        assert round(row["bops"] / 1e9, 1) == pytest.approx(row["printed_bops"] / 1e9)
    first = {
        row["candidate"]: row["stage1"] for row in rows if row["source"] == "Structures explored" and not row["remark"]
    }
    assert first["1282-2-4:4:16:32 +1x1 x4"] == [69.7, 88.8]
    same = [row["bops"] for row in rows if row["source"] == "Experts and expansion"]
    assert max(same) / min(same) < 1.06, "the paper: all models have the same number of BOPs"
    for figure, count in (("Fig. depth", 16), ("Fig. groups", 15)):
        points = [row for row in rows if row["source"] == figure]
        assert len(points) == count
        for number in {row["place"].split(".")[0] for row in points}:
            costs = [row["bops"] for row in points if row["place"].startswith(f"{number}.")]
            assert costs == sorted(costs), "the paper numbers locations by rising BOPs"
    assert "1262-2-4:8:8:16" in run("price", "--paper").stdout


def test_the_reduced_recipe_is_stage_one_of_the_candidate():
    twelve = {"schedule.epochs": 12, "schedule.milestones": [7, 10], "schedule.warmup_epochs": 1}
    recipe = load_recipe("demo", twelve | {"stage.stage1-one-expert": {"distill_from": "teacher"}})
    reduced = reduced_recipe(recipe, Candidate.parse("1121-0.5-1:2:2:4 -1x1 x4"), epochs=3, threads=1)
    assert reduced.stages == ("stage1-one-expert",)
    assert reduced.table("stage1-one-expert").distill_from is None
    assert (reduced.network.arch, reduced.network.aggregation) == ("1121-0.5-1:2:2:4", False)
    schedule = reduced.settings("stage1-one-expert")
    assert (schedule.epochs, schedule.milestones, schedule.warmup_epochs) == (3, (1.75, 2.5), 0.25)
    both = reduced_recipe(recipe, Candidate.parse("1121-0.5-1:2:2:4 +1x1 x4"), 3, 1, experts=True)
    assert both.stages == ("stage1-one-expert", "stage1-experts")
    assert both.settings("stage1-experts").epochs == 3


def test_a_deeper_teacher_is_compared_after_stages():
    recipe = load_recipe("demo", {"stage.teacher.arch": "2222-0.25-1:1:1:1", "distillation.attention_after": "stage"})
    found = full_recipe(recipe, Candidate.parse("1121-0.25-1:1:1:1 +1x1 x4"), "winner")
    assert found.distillation.attention_after == "stage"
    assert found.name == "winner"


def test_a_study_of_another_directory_is_found_by_its_pointer(finished):
    directory, _ = finished
    assert open_study(directory).name == "study"


def test_without_a_budget_it_asks_first(tmp_path):
    """Where nobody can answer it says what to give, and trains nothing."""
    result = CliRunner().invoke(app, ["search", "demo", "--out", str(tmp_path / "study")])
    assert result.exit_code == 2
    words = " ".join(result.output.replace("│", " ").split())
    assert "Without --budget up to 44 networks of any size are trained" in words
    assert not (tmp_path / "study").exists()
