"""What a person sees of a run: nothing cut at 80 columns, the time left, and nothing said twice."""

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from ebnet.recipe.phases import PHASE_NAMES, title
from ebnet.runs.results import PhaseResult, RunResult
from ebnet.train import progress
from ebnet.train.progress import PlainReporter, TerminalReporter, TimeLeft, result_table


def record(epoch: int, step: int, **more: Any) -> dict[str, Any]:
    train = {"loss": 0.5, "labels": 0.5}
    return {"stage": "stage1-one-expert", "epoch": epoch, "step": step, "train": train, "learning_rate": 1e-3} | {
        "images_per_second": 4780.0,
        **more,
    }


def result(name: Any) -> PhaseResult:
    usage = {"0.0.0": [0.5, 0.2, 0.2, 0.1]} if name in ("stage1-experts", "stage2") else {}
    return PhaseResult(name, 0.9876, 0.9991, 0.1, usage, 0.99, 100, 1200, 400_000, 123_456.7, 12_345.6)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def said(reporter: PlainReporter) -> list[str]:
    file = reporter.console.file
    assert isinstance(file, StringIO)
    return file.getvalue().splitlines()


def test_a_log_says_the_end_of_a_short_epoch_once_and_how_long_the_phase_will_take(clock: list[float]) -> None:
    log = PlainReporter(Console(file=StringIO(), width=80))
    log.phase_started("stage1-one-expert", 0, 4)
    clock[0] = 10.0
    log.stepped(1, record(0, 1))
    log.epoch_finished(record(0, 1, val={"top1": 0.5, "top5": 1.0, "loss": 1.0}))
    log.stepped(2, record(1, 2))
    log.stepped(3, None)
    assert said(log) == [
        "Stage I, one expert: begins, 4 steps in all",
        "Stage I, one expert, epoch 1: top-1 50.00%, loss 1.0000; training loss 0.5000 (labels 0.5000), "
        "rate 1.00e-03, 4780 images/s; 30 s left of this phase",
        "Stage I, one expert, epoch 2, step 2: loss 0.5000, rate 1.00e-03, 4780 images/s",
    ]


@pytest.mark.parametrize(("seconds", "told"), [(0.5, "50 s"), (1.0, "2 min"), (10.0, "16 min"), (100.0, "2 h 45 min")])
def test_time_left(clock: list[float], seconds: float, told: str) -> None:
    left = TimeLeft(5, 105)
    assert left.told() == ""
    clock[0] = seconds
    left.stepped(6)
    assert left.told() == told


def test_nothing_is_left_at_the_end(clock: list[float]) -> None:
    left = TimeLeft(0, 1)
    clock[0] = 1.0
    left.stepped(1)
    assert left.told() == ""


@pytest.mark.parametrize("name", PHASE_NAMES)
def test_the_bar_fits_80_columns_and_shows_the_time_left(name: str) -> None:
    console = Console(file=StringIO(), width=80, force_terminal=True, color_system=None)
    reporter = TerminalReporter(console)
    reporter.phase_started(name, 0, 375_300)
    for step in range(1, 60):
        reporter.stepped(step, record(0, step))
    assert reporter._bar is not None
    shown = Console(file=StringIO(), width=80)
    shown.print(reporter._bar.get_renderable())
    reporter.close()
    assert isinstance(shown.file, StringIO)
    (line,) = shown.file.getvalue().splitlines()
    assert title(name) in line  # type: ignore[arg-type]
    assert "loss 0.500, 4780 img/s" in line
    assert "59/375300" in line
    assert "…" not in line


def test_the_summary_fits_80_columns_and_cuts_no_name() -> None:
    console = Console(file=StringIO(), width=80)
    console.print(result_table(RunResult(Path("runs/a"), {name: result(name) for name in PHASE_NAMES}, None)))
    assert isinstance(console.file, StringIO)
    told = console.file.getvalue()
    assert "…" not in told
    assert all(title(name, 4) in told for name in PHASE_NAMES)
    assert max(map(len, told.splitlines())) <= 80
