"""A whole comparison at a size that takes seconds, and its arithmetic on records written by hand."""

import json
import subprocess
import sys
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from ebnet.arch import Arch
from ebnet.cli.app import app
from ebnet.compare.budget import EQUALS, checked, counted, fitted, own
from ebnet.compare.contest import Contest
from ebnet.compare.contestants import METHOD_SETTINGS, PREPARED, Contestant
from ebnet.compare.page import page
from ebnet.compare.standings import standings
from ebnet.compare.summary import summary
from ebnet.compare.tables import standings_table
from ebnet.cost import profile
from ebnet.errors import ConfigError
from ebnet.models.config import NetworkConfig
from ebnet.models.genotype import CellArch
from ebnet.recipe import load_recipe
from ebnet.report.comparison import read_summaries
from ebnet.reproduce.chain import chain
from ebnet.reproduce.worker import work
from ebnet.runs.directory import load_phase
from tests.compare.small import TINY, contest, written

ROOT = Path(__file__).parents[2]
BWN = (Contestant("bwn"), checked("ops"))


def test_prepared_are_enough_and_known() -> None:
    assert len(PREPARED) >= 10
    assert set(PREPARED) <= set(METHOD_SETTINGS)


@pytest.mark.parametrize("equal", ["ops", "bytes"])
@pytest.mark.parametrize("name", [*PREPARED, "sbaseline:4"])
def test_nobody_costs_more_and_none_could_be_wider(name: str, equal: str) -> None:
    recipe = load_recipe("comparison")
    contestant = Contestant.parse(name)

    def cost(settings: dict[str, object]) -> float:
        counted = profile(NetworkConfig.from_dict(settings), 32)
        return counted.ops if equal == "ops" else counted.bytes_fp16

    own = recipe.network.config(10, 3, 1).to_dict()
    made = fitted(recipe, contestant, checked(equal)).settings
    width = made["stem_width"]
    wider = made | {"stem_width": width + 1, "arch": f"1111-{(width + 1) / 64}-1:1:1:1"}
    assert cost(own | made) <= cost(own) < cost(own | wider)


@pytest.mark.parametrize("equal", ["ops", "bytes"])
def test_cells_get_as_many_as_there_are_blocks_as_wide_as_the_budget(equal: str) -> None:
    recipe = load_recipe("comparison")
    made = fitted(recipe, Contestant.parse("bnas-f:2"), checked(equal))
    arch = made.counted.config.arch
    assert isinstance(arch, CellArch)
    assert (arch.cells, made.counted.config.experts, made.counted.config.unit) == (4, 2, "xnor-relu")
    assert made.counted.config.stem_width == 3 * arch.channels
    wider = {"arch": f"bnas-4x{arch.channels + 1}", "stem_width": 3 * arch.channels + 3}
    costs = [one.counted.ops if equal == "ops" else one.counted.bytes_fp16 for one in (made, own(recipe))]
    more = counted(recipe, made.settings | wider).counted
    assert costs[0] <= costs[1] < (more.ops if equal == "ops" else more.bytes_fp16)


def test_cells_have_a_structure_of_their_own(tmp_path: Path) -> None:
    recipe = load_recipe("comparison")
    with pytest.raises(ConfigError, match="bnas-f: cells are a structure of their own"):
        fitted(recipe, Contestant("bnas-f"), "structure")
    one = contest(tmp_path, "bnn", "bnas-f", equal="structure")
    assert list(one.left_out) == ["bnas-f"]
    assert [str(contestant) for contestant in one.contestants] == ["bnn"]
    with pytest.raises(ConfigError, match="bnas-4x8: the network of a comparison's recipe has blocks"):
        fitted(recipe.changed({"network.arch": "bnas-4x8"}), Contestant("bnn"), "ops")


def test_structure_leaves_the_recipe_its_own() -> None:
    made = fitted(load_recipe("comparison"), Contestant("xnor-net"), "structure")
    assert "arch" not in made.settings
    assert str(made.counted.config.arch) == "1111-0.25-1:1:1:1"


def test_mistakes_are_named() -> None:
    with pytest.raises(ConfigError, match=r"no method is called 'xnor'; those are sbaseline, bwn"):
        Contestant.parse("xnor")
    with pytest.raises(
        ConfigError, match=r"'bnn:many': expected METHOD, METHOD:EXPERTS or METHOD\+EXPERTS, for example bnn:4"
    ):
        Contestant.parse("bnn:many")
    with pytest.raises(ConfigError, match=r"equal='time': expected one of ops, bytes, milliseconds, structure"):
        checked("time")
    with pytest.raises(ConfigError, match=r"bwn: even the narrowest costs more ops than"):
        fitted(load_recipe("comparison", ["network.arch=1111-0.015625-1:1:1:1", "network.stem_width=1"]), *BWN)


def test_an_order_survives_the_command_line(tmp_path: Path) -> None:
    for equal in set(EQUALS) - {"milliseconds"}:  # test_times.py has that
        one = contest(tmp_path, "bnn", "bi-real:2", equal=equal)
        again = Contest.from_json(one.to_json())
        assert again == one
        assert [link.key for link in again.links()] == [link.key for link in one.links()]


def test_ranks_are_within_seeds_and_only_shared_seeds_count(tmp_path: Path) -> None:
    one = contest(tmp_path, "bnn", "bi-real", "ir-net", seeds=3)
    written(one, {"bnn": [0.5, 0.4], "bi-real": [0.6, 0.4, 0.9], "ir-net": [0.5, 0.7, 0.1]})
    first, second, third = standings(one)
    assert [row.contestant for row in (first, second, third)] == ["ir-net", "bi-real", "bnn"]
    assert first.top1 == pytest.approx({0: 50, 1: 70})
    assert (first.ranks, second.ranks, third.ranks) == ({0: 2.5, 1: 1.0}, {0: 1.0, 1: 2.5}, {0: 2.5, 1: 2.5})
    assert second.behind == pytest.approx({0: -10, 1: 30})
    told = second.to_dict()["behind_the_best"]
    assert told == pytest.approx({"mean": 10, "standard_error": 20})  # deviation 28.28 over root 2


def test_one_that_broke_down_takes_no_rank_and_no_seeds(tmp_path: Path) -> None:
    one = contest(tmp_path, "bnn", "bi-real")
    written(one, {"bnn": [0.5, None], "bi-real": [0.6, 0.4]})
    best, broken = standings(one)
    assert best.top1 == pytest.approx({0: 60, 1: 40})
    assert broken.contestant == "bnn"
    assert broken.top1 == {}
    assert "seed 1" in (broken.broken or "")
    assert "`bnn` broke down: seed 1, stage1-one-expert: the loss is no longer a number." in page([summary(one)])


def test_a_page_before_anything_was_run(tmp_path: Path) -> None:
    one = contest(tmp_path, "bnn", "bi-real")
    text = page([summary(one)])
    assert "Not run yet." in text
    assert "figures/" not in text
    assert "| `bi-real` |" in text


def test_methods_of_equal_beginnings_share_them(tmp_path: Path) -> None:
    """Experts on a method start from the same single one, at the same structure."""
    alone, both = (contest(tmp_path, *names, seeds=1, equal="structure") for names in (["bnn"], ["bnn", "bnn:2"]))
    assert len(alone.links()) == 2
    assert len(both.links()) == 3


def test_a_comparison_from_the_command_to_the_page(tmp_path: Path) -> None:
    """Native and torch units, several bases, experts; run, resumed, told."""
    names = ["xnor-net", "reactnet-18", "reactnet-18:2", "abc-net-1", "bnas-f"]
    place = ["--results", str(tmp_path / "results"), "--work", str(tmp_path / "work"), "--seeds", "1"]
    place += [word for setting in TINY for word in ("--set", setting)]
    work(contest(tmp_path, *names, seeds=1))
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "results" / "runs").iterdir()}
    written_to = tmp_path / "docs" / "comparison.md"
    ran = CliRunner().invoke(app, ["compare", *names, *place, "--json", "--page", str(written_to)])
    assert ran.exit_code == 0, ran.output
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "results" / "runs").iterdir()} == kept
    told = json.loads(ran.stdout)
    rows = {row["method"]: row for row in told["standings"]}
    assert set(rows) == set(names)
    assert sorted(row["rank"]["mean"] for row in rows.values())[0] >= 1
    own = NetworkConfig.from_dict(load_recipe("comparison").changed(TINY).network.config(10, 3, 1).to_dict())
    for row in rows.values():
        assert 0 <= row["top1"]["mean"] <= 100
        assert row["cost"]["ops"] <= profile(own, 8).ops
    text = written_to.read_text()
    assert f"{rows['xnor-net']['top1']['mean']:.2f}" in text
    assert (tmp_path / "docs" / "figures" / "comparison-ops.svg").read_text().startswith("<?xml")


@pytest.mark.slow
def test_workers_are_started_and_go_on_where_others_stopped(tmp_path: Path) -> None:
    place = ["--results", str(tmp_path / "results"), "--work", str(tmp_path / "work"), "--seeds", "1", "--jobs", "2"]
    place += [word for setting in TINY for word in ("--set", setting)]
    for names in (["bnn"], ["bnn", "bi-real"]):
        ran = CliRunner().invoke(app, ["compare", *names, *place])
        assert ran.exit_code == 0, ran.output
    assert len(list((tmp_path / "results" / "runs").iterdir())) == 4


def test_without_images_it_says_in_one_line_what_to_give(tmp_path: Path) -> None:
    order = replace(contest(tmp_path, "bnn"), overrides=()).to_json()
    ran = subprocess.run([sys.executable, "-m", Contest.worker, order], capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert ran.stderr == "error: folder is not on this machine; say where it is with --root / --data\n"


@pytest.mark.parametrize(("name", "without"), [("comparison", ()), ("comparison-20", ("ccnn", "abc-net-1"))])
def test_the_documents_standings_are_what_the_records_say(name: str, without: tuple[str, ...]) -> None:
    """The commands on the page write them."""
    results = ROOT / "results" / "comparison"
    methods = tuple(method for method in PREPARED if method not in without)
    one = Contest(methods, name, "ops", 3, Path("runs/compare"), results)
    told = {summary["recipe"]: summary for summary in read_summaries(results) if summary["equal"] == "ops"}
    assert told[name] == json.loads(json.dumps(summary(one)))


@pytest.mark.parametrize("width", [80, 120])
def test_no_number_is_cut_in_a_narrow_terminal(width: int) -> None:
    for told in read_summaries(ROOT / "results" / "comparison"):
        console = Console(width=width, file=StringIO(), record=True)
        console.print(standings_table(told))
        assert "…" not in console.export_text()


def test_the_documents_page_is_written_from_the_standings() -> None:
    assert (ROOT / "docs" / "comparison.md").read_text() == page(read_summaries(ROOT / "results" / "comparison"))


def test_the_two_structures_have_one_budget() -> None:
    """ResNet-20's nine blocks and its weights: 18 convolutions; one channel more would cost more than `comparison`."""
    first, second = (load_recipe(name) for name in ("comparison", "comparison-20"))
    twenty = Arch.parse(second.network.arch)
    assert sum(twenty.blocks) == 9
    assert twenty.widths == (11, 22, 44, 44)
    own_ops = own(first).counted.ops
    wider = {"arch": "3321-0.1875:0.1875:0.1875:0.09375-1:1:1:1", "stem_width": 12}
    assert own(second).counted.ops <= own_ops < counted(second, wider).counted.ops


def test_another_optimizer_shares_the_first_stages_and_leaves_signs(tmp_path: Path) -> None:
    one = contest(tmp_path, "rethinking-bnn", seeds=1)
    keys = [link.key for link in chain(one.recipe_of(Contestant("rethinking-bnn"), 0))]
    usual = [link.key for link in chain(one.recipe_of(Contestant("rethinking-bnn"), 0).changed({"optimizer": "adam"}))]
    assert keys[0] == usual[0]
    assert keys[1] != usual[1]
    work(one)
    network = load_phase(tmp_path / "work" / keys[1], "stage2")
    for layer in network.binary_layers().values():
        assert set(layer.weight.unique().tolist()) == {-1.0, 1.0}
