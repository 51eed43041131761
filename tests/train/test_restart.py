"""Killed, stopped, out of space, damaged: the run goes on, and ends with the same bits."""

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ebnet.cli.app import app
from ebnet.errors import CheckpointError, Interrupted
from ebnet.runs.checkpoint import load_checkpoint
from ebnet.runs.phase import LAST, PREVIOUS
from ebnet.train import Reporter, train
from ebnet.train.loop import Trainer
from tests.train.tiny import pictures, tiny, write_recipe

KILLS = 5
SMALL = {
    "schedule__batch_size": 16,
    "schedule__epochs": 2,
    "routing": {"gate_start": "clusters", "gate_rate": 0.1, "coupling": 1.0},
}


def _everything(out: Path) -> dict[str, object]:
    """All that a run leaves behind, without times."""
    found: dict[str, object] = {}
    for path in sorted(out.glob("stages/*/*.safetensors")):
        if path.name != PREVIOUS:
            checkpoint = load_checkpoint(path)
            found[str(path.relative_to(out))] = {name: t.numpy().tobytes() for name, t in checkpoint.tensors.items()}
    found["final"] = (out / "final" / "model.safetensors").read_bytes()
    records = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    found["metrics"] = [{k: v for k, v in record.items() if k != "images_per_second"} for record in records]
    return found


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    out = tmp_path_factory.mktemp("undisturbed") / "run"
    train(tiny(**SMALL), out, datasets=pictures())
    return _everything(out)


def _before_step(monkeypatch: pytest.MonkeyPatch, act: Callable[[int], None]) -> None:
    """Do something before each step, counted from 1 over all stages."""
    step, count = Trainer.step, [0]

    def watched(self: Trainer, *arguments: Any) -> dict[str, float]:
        count[0] += 1
        act(count[0])
        return step(self, *arguments)

    monkeypatch.setattr(Trainer, "step", watched)


def test_signals_save_first_and_the_run_goes_on(
    undisturbed: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signals = {3: signal.SIGTERM, 10: signal.SIGINT, 17: signal.SIGTERM}
    with monkeypatch.context() as patch:
        _before_step(patch, lambda count: os.kill(os.getpid(), signals[count]) if count in signals else None)
        for number in signals.values():
            with pytest.raises(Interrupted, match="stopped and saved after step") as stopped:
                train(tiny(**SMALL), tmp_path / "run", datasets=pictures())
            assert stopped.value.signal == number
        train(tiny(**SMALL), tmp_path / "run", datasets=pictures())
    assert _everything(tmp_path / "run") == undisturbed


def test_a_stopped_command_ends_with_the_code_of_its_signal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = write_recipe(tmp_path / "tiny.toml", stages=["teacher"], stage={}, schedule__epochs=1)
    arguments = ["train", str(recipe), "--out", str(tmp_path / "run")]
    with monkeypatch.context() as patch:
        _before_step(patch, lambda count: os.kill(os.getpid(), signal.SIGTERM) if count == 2 else None)
        result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 143
    assert "stopped and saved after step 2 of teacher; run the same command to go on" in result.stdout
    assert "teacher: going on at step 2" in CliRunner().invoke(app, arguments).stdout


def test_a_damaged_checkpoint_is_noticed_and_the_one_before_it_used(
    undisturbed: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    class Listener(Reporter):
        def say(self, message: str) -> None:
            said.append(message)

    out = tmp_path / "run"
    with monkeypatch.context() as patch:
        _before_step(patch, lambda count: os.kill(os.getpid(), signal.SIGTERM) if count == 11 else None)
        with pytest.raises(Interrupted):
            train(tiny(**SMALL), out, datasets=pictures())
    damaged = out / "stages" / "1-stage1-one-expert" / LAST
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 255
    damaged.write_bytes(content)
    train(tiny(**SMALL), out, datasets=pictures(), reporter=Listener())
    assert f"{damaged} is damaged" in said[0]
    assert f"going on from {damaged.with_name(PREVIOUS)}, which is whole" in said[0]
    assert _everything(out) == undisturbed


def test_a_full_disk_is_a_clear_error_and_what_was_saved_survives(
    undisturbed: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, (_, hard) = tmp_path / "run", resource.getrlimit(resource.RLIMIT_FSIZE)
    with monkeypatch.context() as patch:
        # From step 9 on, in the second stage, no file may grow beyond what the weights alone take.
        limit = 40_000
        _before_step(patch, lambda n: resource.setrlimit(resource.RLIMIT_FSIZE, (limit if n > 8 else hard, hard)))
        try:
            with pytest.raises(CheckpointError, match=r"could not be written: .* run the same command again"):
                train(tiny(**SMALL), out, datasets=pictures())
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    assert not list(out.rglob("*.tmp"))
    train(tiny(**SMALL), out, datasets=pictures())
    assert _everything(out) == undisturbed


def _start(recipe: Path, out: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "ebnet", "train", str(recipe), "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )


def _wait_for_records(process: subprocess.Popen[str], out: Path, count: int) -> None:
    """Until the run has written so many lines of metrics: about one a step, over all stages."""
    metrics = out / "metrics.jsonl"
    while process.poll() is None and not (metrics.exists() and metrics.read_bytes().count(b"\n") >= count):
        time.sleep(0.005)


@pytest.mark.slow
def test_a_run_killed_again_and_again_ends_with_the_same_bits(tmp_path: Path) -> None:
    recipe, out, undisturbed = write_recipe(tmp_path / "tiny.toml"), tmp_path / "run", tmp_path / "undisturbed"
    output, _ = _start(recipe, undisturbed).communicate(timeout=600)
    assert "Stage II: done" in output
    lines = (undisturbed / "metrics.jsonl").read_bytes().count(b"\n")
    rng, told = random.Random(1), ""
    for count in sorted(rng.sample(range(1, lines - 6), KILLS)):
        process = _start(recipe, out)
        _wait_for_records(process, out, count)
        time.sleep(rng.uniform(0.0, 0.1))  # into the step or the checkpoint after it
        process.kill()
        told += process.communicate()[0]
        assert process.returncode == -signal.SIGKILL, "the run ended before it could be killed"
    told += _start(recipe, out).communicate(timeout=600)[0]
    assert "going on at step" in told
    assert _everything(out) == _everything(undisturbed)
