"""The demo from end to end on a short schedule, and again: what is done is not done twice."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import ebnet
from ebnet.cli.app import app

SHORT = [
    "data.name=generated",
    "data.size=32",
    "schedule.epochs=1",
    "schedule.warmup_epochs=0",
    "schedule.milestones=[]",
    "network.experts=2",
]


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "demo"


def arguments(out: Path) -> list[str]:
    return ["demo", "--out", str(out), *(word for setting in SHORT for word in ("--set", setting))]


@pytest.fixture(scope="module")
def first(out: Path) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ebnet.report.observe.EMBEDDED", 60)
        done = CliRunner().invoke(app, arguments(out))
    assert done.exit_code == 0, f"{done.output}\n{done.exception!r}"
    return done.output


def test_makes_everything_and_says_so(first: str, out: Path) -> None:
    for words in (
        "1/5",
        "5/5",
        "top-1, Stage I, one expert",
        "top-1, Stage II ",
        "size packed",
        "latency, engine",
        "Where to look next",
    ):
        assert words in first
    engine = ebnet.load(out / "net.ebn")
    assert engine.classes == 10
    assert engine.predict(out / "digit.png").labels
    verification = json.loads((out / "verify.json").read_text())
    assert verification["images"] == 200
    assert verification["top1_agreement"] == 1
    assert verification["unexplained"] == 0
    peers = json.loads((out / "bench.json").read_text())["peers"]
    assert peers[0]["name"] == "engine"
    assert len({peer["runs"] for peer in peers}) == 1
    assert "Latency against others" in (out / "report.html").read_text()


def test_again_does_nothing_twice(first: str, out: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (out / "net.ebn", out / "verify.json", out / "bench.json")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ebnet.report.observe.EMBEDDED", 60)
        done = CliRunner().invoke(app, [*arguments(out), "--json"])
    assert done.exit_code == 0, done.output
    assert {path: path.stat().st_mtime_ns for path in before} == before
    result = json.loads(done.stdout.splitlines()[-1])
    assert set(result["stages"]) == {"teacher", "stage1-one-expert", "stage1-experts", "stage2"}
    assert result["packed_bytes"] == (out / "net.ebn").stat().st_size < result["float_bytes"]
    assert done.stderr.count("done before") == 3


def test_another_schedule_is_refused_and_nothing_touched(first: str, out: Path) -> None:
    done = CliRunner().invoke(app, [*arguments(out), "--set", "schedule.epochs=2"])
    assert "another recipe" in str(done.exception)
    assert (out / "report.html").exists()
