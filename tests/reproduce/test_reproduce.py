"""Whole experiments at a size that takes seconds, from the command to the page."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ebnet.cli.app import main
from ebnet.errors import StudyError
from ebnet.reproduce.claim import load_claim
from ebnet.reproduce.document import document
from ebnet.reproduce.order import Order
from ebnet.reproduce.records import Records
from ebnet.reproduce.shipped import shipped_verdicts
from ebnet.reproduce.verdict import judge
from ebnet.reproduce.worker import work
from tests.reproduce.generated import ONE_EPOCH_OF_STRIPES

TINY = (
    *ONE_EPOCH_OF_STRIPES,
    "schedule.milestones=[]",
    "network.stem=cifar",
    "network.arch=1111-0.0625-1:1:1:1",
    "network.stem_width=4",
)


def order(where: Path, *claims: str, seeds: int = 1) -> Order:
    return Order(claims, seeds, where / "work", where / "results", None, TINY)


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Order:
    """A claim with as many seeds as a verdict needs."""
    wanted = order(tmp_path_factory.mktemp("tried"), "mixup", seeds=3)
    work(wanted)
    return wanted


def test_every_stage_has_one_record_without_weights(tried: Order) -> None:
    records = Records(tried.results)
    links = tried.links()
    assert {path.stem for path in (tried.results / "runs").iterdir()} == {link.key for link in links}
    for link in links:
        record = records.read(link.key)
        assert record["stage"] == link.phase
        assert record["seed"] == link.recipe.seed
        assert 0 <= record["top1"] <= 1
        assert 0 <= record["train_top1"] <= 1
        several = record["recipe"]["network"]["experts"] > 1
        assert ("margin" in record["epochs"][0]) == several
        # The only epoch of Stage II here is its first, which has no past.
        assert ("churn" in record["epochs"][0]) == (several and link.phase != "stage2")
        assert len(record["epochs"]) == 1
        assert record["epochs"][0]["top1"] == record["top1"]
        assert "root" not in record["recipe"]["data"]
        assert records.path(link.key).stat().st_size < 20_000


def test_differences_are_those_of_the_records(tried: Order) -> None:
    judgement = judge(load_claim("mixup"), Records(tried.results), TINY)
    finding = judgement.findings[0]
    with_, without = ({run.seed: run for run in judgement.of(name)} for name in ("mixup", "without"))
    first = load_claim("mixup").first_seed
    assert list(finding.values) == [first, first + 1, first + 2]
    for seed in finding.values:
        files = [
            json.loads((tried.results / "runs" / f"{run.phases[-1]['key']}.json").read_text())
            for run in (with_[seed], without[seed])
        ]
        assert finding.values[seed] == pytest.approx(100 * (files[0]["top1"] - files[1]["top1"]))


def test_the_teacher_taught(tmp_path: Path) -> None:
    """A distilled stage's loss has the teacher's terms; its record names the teacher's."""
    wanted = order(tmp_path, "distillation")
    work(wanted)
    runs = judge(load_claim("distillation"), Records(wanted.results), TINY).of("teacher")
    metrics = (wanted.work / runs[0].phases[1]["key"] / "metrics.jsonl").read_text().splitlines()
    assert {"attention", "logits", "labels"} <= set(json.loads(metrics[-1])["train"])
    assert runs[0].phases[1]["after"] == [runs[0].phases[0]["key"]]


def test_what_has_a_record_is_not_run_again(tried: Order) -> None:
    before = {path: path.stat().st_mtime_ns for path in (tried.results / "runs").iterdir()}
    work(tried)
    assert before == {path: path.stat().st_mtime_ns for path in (tried.results / "runs").iterdir()}


def test_a_network_that_is_not_there_is_trained_again(tmp_path: Path, tried: Order) -> None:
    """Records come with the source, networks do not: what follows a recorded phase can be trained all the same."""
    shutil.copytree(tried.results, tmp_path / "results")
    records, last = Records(tmp_path / "results"), tried.links()[2]
    before = {link.key: records.path(link.key).read_bytes() for link in last.before}
    recorded = records.read(last.key)
    records.path(last.key).unlink()
    work(replace(tried, work=tmp_path / "work", results=tmp_path / "results"))
    assert records.read(last.key)["top1"] == recorded["top1"]
    assert {path.name for path in (tmp_path / "work").glob("*/")} == {link.key for link in (*last.before, last)}
    assert before == {key: records.path(key).read_bytes() for key in before}


def test_stopping_early_leaves_whole_seeds(tmp_path: Path, tried: Order) -> None:
    """Also where records came without networks: the first phases of later seeds wait until a seed has its last."""
    shutil.copytree(tried.results, tmp_path / "results")
    wanted = replace(tried, work=tmp_path / "work", results=tmp_path / "results")
    records, lasts = Records(wanted.results), [link for link in tried.links() if link.phase == "stage2"]
    for link in lasts:
        records.path(link.key).unlink()
    work(wanted)
    written = [records.path(link.key).stat().st_mtime_ns for link in lasts]
    begun = [(wanted.work / link.key / "recipe.toml").stat().st_mtime_ns for link in (last.before[0] for last in lasts)]
    seeds = [link.recipe.seed for link in lasts]
    for seed in sorted(set(seeds))[1:]:
        earlier = max(at for at, of in zip(written, seeds, strict=True) if of < seed)
        assert earlier < min(at for at, of in zip(begun, seeds, strict=True) if of == seed)


def test_a_network_that_breaks_down_when_it_is_trained_again_is_an_error(tmp_path: Path) -> None:
    """Not a loop: its record says that it was trained, elsewhere."""
    wanted = Order(("mixup",), 1, tmp_path / "w", tmp_path / "r", None, (*TINY, "schedule.learning_rate=1e38"))
    records, first = Records(wanted.results), wanted.links()[0]
    records.write({"key": first.key})
    with pytest.raises(StudyError, match=rf"no longer a number.*stage1-one-expert.*delete .*{first.key}"):
        work(wanted)
    assert records.read(first.key) == {"key": first.key}


def test_only_what_decides_is_trained_where_that_is_asked_for(tmp_path: Path) -> None:
    wanted = replace(order(tmp_path, "shortcuts"), deciding=True)
    assert Order.from_json(wanted.to_json()) == wanted
    assert [link.recipe.network.shortcut for link in wanted.links()] == ["linear", "prelu"]


def test_a_chain_of_stages_is_the_run_it_is_cut_from(tmp_path: Path, tried: Order) -> None:
    """Training all stages in one run ends with the same accuracy and the same weights as training them link by link."""
    from safetensors.numpy import load_file

    from ebnet.train.pipeline import train

    recipe = load_claim("mixup").recipe_of("mixup", load_claim("mixup").first_seed, TINY)
    train(recipe, tmp_path / "whole")
    last = judge(load_claim("mixup"), Records(tried.results), TINY).of("mixup")[0].phases[-1]
    whole, cut = (
        load_file(path / "final" / "model.safetensors") for path in (tmp_path / "whole", tried.work / last["key"])
    )
    assert whole.keys() == cut.keys()
    assert all((whole[name] == cut[name]).all() for name in whole)


def test_training_that_breaks_down_is_a_result(tmp_path: Path) -> None:
    wanted = Order(("mixup",), 1, tmp_path / "w", tmp_path / "r", None, (*TINY, "schedule.learning_rate=1e38"))
    work(wanted)
    records = Records(wanted.results)
    first = wanted.links()[0]
    assert "no longer a number" in records.read(first.key)["failed"]
    assert not any(records.has(link.key) for link in wanted.links() if link.before)


def ebnet(*words: str, where: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "ebnet", "reproduce", *words, "--results", "r", "--work", "w", "--jobs", "2"]
        + [word for setting in TINY for word in ("--set", setting)],
        cwd=where,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.slow
def test_stopped_in_the_middle_and_called_again(tmp_path: Path) -> None:
    """SIGKILL to everything at some point, SIGTERM at another: the third call ends with every record."""
    for number in (signal.SIGKILL, signal.SIGTERM):
        process = ebnet("mixup", "--seeds", "1", where=tmp_path)
        wanted = len(list((tmp_path / "r" / "runs").glob("*.json"))) + 1
        until = time.monotonic() + 120
        while len(list((tmp_path / "r" / "runs").glob("*.json"))) < wanted and time.monotonic() < until:
            time.sleep(0.05)
        if number == signal.SIGKILL:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        process.communicate(timeout=120)
        assert process.returncode != 0
    process = ebnet("mixup", "--seeds", "1", "--json", where=tmp_path)
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    (summary,) = json.loads(out)
    assert summary["claim"] == "mixup"
    assert summary["verdict"] == "undecided at this scale"  # one seed decides nothing
    assert len(summary["runs"]) == 2
    assert len(list((tmp_path / "r" / "runs").glob("*.json"))) == 6


def test_unknown_claims_and_missing_records_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def said(*words: str) -> str:
        monkeypatch.setattr(sys, "argv", ["ebnet", *words])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        return err if end.value.code else out

    assert "no claim is called 'nonsense'" in said("reproduce", "nonsense")
    assert "which claims?" in said("reproduce")
    assert "nowhere holds no records" in said("results", "nowhere")
    listed = json.loads(said("reproduce", "--list", "--json"))  # no records here: those that the package carries
    assert listed == [claim for claim in shipped_verdicts() if claim["chapter"] == "claims"]


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    records = Records(tmp_path)
    records.write({"key": "a"})
    records.path("a").write_text('{"key": "a", "top1"')
    with pytest.raises(Exception, match=r"a\.json cannot be read .* delete it to measure it again"):
        records.read("a")


def test_a_page_without_records_says_so(tmp_path: Path) -> None:
    page = document(Records(tmp_path), Records(tmp_path / "pilots"))
    assert "Not run: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11." in page
