"""The report of a run: its numbers are those of the run, and it works in a browser."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from playwright.sync_api import Browser, expect
from typer.testing import CliRunner

import ebnet
from ebnet.cli.app import app
from ebnet.data import CentreCrop, Normalise, open_dataset
from ebnet.errors import CheckpointError, ConfigError
from ebnet.models.network import ExpertBinaryNetwork
from ebnet.models.pretrained import load_pretrained
from ebnet.nn import Precision
from ebnet.report.figure import Bars, Choice, HeatMap, Lines, Scatter
from ebnet.report.observe import observe
from ebnet.report.page import Report
from ebnet.report.run import run_report
from ebnet.report.source import make_report
from ebnet.runs.directory import RunDirectory
from ebnet.runs.starts import STARTS, read_starts
from ebnet.runtime.bench import bench
from ebnet.train.pictures import Pictures
from tests.browser import watch
from tests.tiny_run import TinyRun


@pytest.fixture(scope="module")
def bench_file(tiny_run: TinyRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bench") / "bench.json"
    peers = [{"name": n, "median": m, "minimum": m / 2, "runs": 9} for n, m in (("engine", 1e-3), ("torch", 5e-3))]
    path.write_text(json.dumps(bench(tiny_run.packed, (1,), (1, 4), None, 0.01).to_dict() | {"peers": peers}))
    return path


@pytest.fixture(scope="module")
def report(tiny_run: TinyRun, bench_file: Path) -> Report:
    return run_report(tiny_run.run, bench_file)


@pytest.fixture(scope="module")
def page_file(report: Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return report.write(tmp_path_factory.mktemp("report") / "report.html")


def test_holds_every_figure(report: Report) -> None:
    assert [figure.name for figure in report.figures] == [
        "accuracy-curves",
        "loss-curves",
        "phase-accuracy",
        "routing-churn",
        "expert-usage",
        "classes-of-experts",
        "features",
        "confusion",
        "worst-images",
        "cost-operations",
        "cost-bytes",
        "latency",
        "engine-ops",
    ]


def test_curves_are_the_metrics(report: Report, tiny_run: TinyRun) -> None:
    records = [json.loads(line) for line in (tiny_run.run / "metrics.jsonl").read_text().splitlines()]
    epochs = [record for record in records if record["kind"] == "epoch"]
    curves = next(f for f in report.figures if f.name == "accuracy-curves")
    assert isinstance(curves, Lines)
    assert list(curves.series[0].values) == [100 * e["val"]["top1"] for e in epochs]
    assert list(curves.series[0].x) == list(range(1, len(epochs) + 1))
    assert [span.label for span in curves.spans][-1] == "Stage II"
    assert len(curves.spans) == 4


def test_stage_bars_are_the_results(report: Report, tiny_run: TinyRun) -> None:
    bars = next(f for f in report.figures if f.name == "phase-accuracy")
    assert isinstance(bars, Bars)
    state = json.loads((tiny_run.run / "stages" / "3-stage2" / "state.json").read_text())
    assert bars.series[0].values[3] == 100 * state["position"]["result"]["top1"]


def test_observation_is_the_networks_answer(tiny_run: TinyRun) -> None:
    network = load_pretrained(tiny_run.run / "final")
    pictures = Pictures.open(RunDirectory(tiny_run.run).recipe().data)
    seen = observe(network, pictures, count=50)
    val = open_dataset("mnist5k", split="val")
    chosen = range(0, len(val), len(val) // 50)
    images = np.stack([val.image(i) for i in chosen])
    assert (seen.labels == val.labels[list(chosen)]).all()
    normalise = Normalise(val.statistics.mean, val.statistics.std)
    tensor = normalise.tensor(torch.from_numpy(CentreCrop(28).batch(images, np.zeros((len(images), 0)))))
    assert (seen.predicted == network(tensor).argmax(1).numpy()).all()
    assert (seen.experts == network.experts(tensor).numpy()).all()
    shares = network(tensor).softmax(1).detach().numpy()
    np.testing.assert_allclose(seen.probabilities[:, 0], shares[np.arange(len(images)), seen.labels], atol=1e-6)
    np.testing.assert_allclose(seen.probabilities[:, 1], shares.max(1), atol=1e-6)


def test_columns_of_the_heat_map_sum_to_one(report: Report) -> None:
    choice = next(f for f in report.figures if f.name == "classes-of-experts")
    assert isinstance(choice, Choice)
    assert len(choice.options) == 8
    for option in choice.options:
        assert isinstance(option, HeatMap)
        np.testing.assert_allclose(np.sum(option.values, 0), 1)
        assert list(option.columns) == list("0123456789")


def test_features_are_coloured_by_the_last_layer(report: Report) -> None:
    scatter = next(f for f in report.figures if f.name == "features")
    assert isinstance(scatter, Scatter)
    assert scatter.colourings[0].name == "the expert of layer 3.0.1"
    assert len(scatter.x) == len(scatter.tips) == 600
    assert np.isfinite(scatter.x).all()


def test_one_file_that_needs_no_network(page_file: Path) -> None:
    html = page_file.read_text()
    assert len(html) < 6e6
    assert not re.search(r"""(src|href)=["']?(https?:)?//|url\(["']?https?:|@import""", html)


def test_in_a_browser(page_file: Path, browser: Browser) -> None:
    seen = watch(browser)
    page = seen.page
    page.goto(page_file.as_uri())
    light = seen.ground
    page.click("#theme")
    assert seen.ground != light

    layer = page.locator("#classes-of-experts select")
    shown = page.locator("#classes-of-experts .option:visible")
    expect(shown).to_have_count(1)
    before = shown.inner_text()
    layer.select_option(index=0)
    expect(shown).to_have_count(1)
    assert shown.inner_text() != before

    dot = page.locator("#features .dot").nth(7)
    dot.scroll_into_view_if_needed()
    page.wait_for_timeout(500)  # for the page to stand still: scrolling hides what hovering shows
    dot.hover(force=True)
    expect(page.locator("#tip .picture")).to_be_visible()
    assert "experts" in page.locator("#tip").inner_text()
    assert "data:image/png" in page.evaluate(
        "getComputedStyle(document.querySelector('#tip .picture')).backgroundImage"
    )
    dot_before = dot.get_attribute("class")
    page.locator("#features select").select_option(label="class")
    expect(page.locator("#features .legend:visible span")).to_have_count(10)
    classes = {d.get_attribute("class") for d in page.locator("#features .dot").all()[::20]}
    assert len(classes) > 3
    assert dot_before is not None

    page.locator("#engine-ops .bar i").first.hover()
    expect(page.locator("#tip")).to_contain_text("µs")
    assert seen.complaints == []
    assert all(url.startswith(("file:", "data:")) for url in seen.requests)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_narrow_and_dark(page_file: Path, browser: Browser, scheme: str) -> None:
    seen = watch(browser, width=360, scheme=scheme)
    seen.page.goto(page_file.as_uri())
    assert not seen.overflows
    assert seen.ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(18, 22, 28)"}[scheme]
    assert seen.complaints == []


def test_prints_on_white_with_every_figure(page_file: Path, browser: Browser) -> None:
    seen = watch(browser, scheme="dark")
    seen.page.goto(page_file.as_uri())
    seen.page.emulate_media(media="print")
    assert seen.ground == "rgb(255, 255, 255)"
    assert len(seen.page.pdf()) > 10_000


def test_a_run_that_has_just_begun(tiny_run: TinyRun, tmp_path: Path) -> None:
    """Only the teacher's first epoch: the rest is left out, not an error."""
    run = tmp_path / "run"
    shutil.copytree(tiny_run.run, run)
    shutil.rmtree(run / "final")
    shutil.rmtree(run / "stages")
    first = (run / "metrics.jsonl").read_text().splitlines()
    epoch = next(line for line in first if '"kind": "epoch"' in line)
    (run / "metrics.jsonl").write_text(epoch + '\n{"kind": "ste')
    assert [f.name for f in run_report(run).figures] == ["accuracy-curves", "loss-curves"]
    (run / "metrics.jsonl").unlink()
    with pytest.raises(CheckpointError, match="has not begun"):
        run_report(run)


def test_command(tiny_run: TinyRun, bench_file: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(
        app, ["report", str(bench_file), "-o", str(tmp_path / "b.html"), "--figures", str(tmp_path / "figures")]
    )
    assert done.exit_code == 0, done.output
    assert "Latency against others" in (tmp_path / "b.html").read_text()
    assert {p.name for p in (tmp_path / "figures").iterdir()} == {
        "latency.png",
        "latency.svg",
        "engine-ops.png",
        "engine-ops.svg",
    }


def test_latency_against_peers_alone(tmp_path: Path) -> None:
    """The JSON of benchmarks/latency.py."""
    path = tmp_path / "latency.json"
    missing = [{"name": "Larq", "reason": "old"}]
    times = {"engine": (5.0, 4.0), "OpenVINO": (40.0, 30.0), "LiteRT": (20.0, 10.0)}
    peers = [{"name": name, "median": median, "minimum": least} for name, (median, least) in times.items()]
    path.write_text(json.dumps({"threads": 1, "rounds": 9, "peers": peers, "missing": missing}))
    report = make_report(path)
    assert "Not available: Larq (old)." in report.sections[0].text
    assert ("8.0x", "faster than OpenVINO, one thread, in turns") in report.facts
    assert [figure.name for figure in report.figures] == ["latency"]


@pytest.mark.parametrize("content", ["", "[]", '{"timings": []}', "\x00"])
def test_what_is_no_bench(tmp_path: Path, content: str) -> None:
    path = tmp_path / "bench.json"
    path.write_text(content)
    with pytest.raises(ConfigError, match="not a bench file"):
        make_report(path)


def test_what_is_nothing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        make_report(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="neither a run"):
        make_report(tmp_path)


def told(report: Report, section: str) -> dict[str, str]:
    table = next(s for s in report.sections if s.title == section).table
    assert table is not None
    return {row[0]: row[1] for row in table.rows}


def test_says_where_the_numbers_come_from(report: Report, tiny_run: TinyRun) -> None:
    (start,) = read_starts(tiny_run.run)
    rows = told(report, "Origin")
    assert rows["trained"] == start["date"]
    assert rows["by the command"] == start["command"]
    assert re.fullmatch(r".+, \d+ cores?", rows["on"])
    assert f"ebnet {ebnet.__version__}, torch {torch.__version__.partition('+')[0]}" in rows["with"]
    assert rows["recipe and seed"] == "demo, seed 0"
    assert rows["timed on"] == rows["on"]
    assert re.match(r"20\d\d-\d\d-\d\d \d\d:\d\d UTC, ebnet", rows["report written"])


def test_a_run_of_before_starts_were_kept_says_so(tiny_run: TinyRun, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(tiny_run.run, copy)
    (copy / STARTS).write_text('{"date": "cut o')
    assert told(run_report(copy), "Origin")["by the command"] == "not recorded"


def _bytes(told: str) -> float:
    number, unit = told.split()
    return float(number) * {"MB": 1e6, "kB": 1e3}[unit]


def test_facts_of_size_operations_and_accuracy(report: Report, tiny_run: TinyRun) -> None:
    facts = {name: value for value, name in report.facts}
    config = load_pretrained(tiny_run.run / "final").config
    plain = ExpertBinaryNetwork(config.with_experts(1), Precision.REAL)
    floats = 4 * sum(p.numel() for p in plain.parameters())
    (size,) = (name for name in facts if "one expert, all floats" in name)
    assert _bytes(size.rpartition(": ")[2]) == pytest.approx(floats, rel=0.01)
    assert any("real multiply-accumulates" in name for name in facts)
    assert any(re.search(r"Stage II: all binary; 95 % interval [\d.]+ to [\d.]+$", name) for name in facts)
    times = [name for name in facts if "in the engine" in name]
    assert times == ["median of one image in the engine, one thread, in turns"]
    assert facts[times[0]] == "1.00 ms"
