"""Killed, stopped, out of space, damaged: the run goes on, and ends with the same bits."""

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ebnet.train.checkpoint import LAST, load_checkpoint
from tests.train.tiny import write_recipe

KILLS = 5


def _start(recipe: Path, out: Path, limit: int | None = None) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "ebnet", "train", str(recipe), "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    if limit is not None:  # long before it writes anything
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (limit, limit))
    return process


def _finish(process: subprocess.Popen[str], expected: int = 0) -> str:
    output, _ = process.communicate(timeout=300)
    assert process.returncode == expected, output
    return output


def _wait_for_steps(process: subprocess.Popen[str], out: Path) -> None:
    """Until this process has trained: the metrics file changes again after it was cut to the last checkpoint."""
    seen = (out / "metrics.jsonl").stat().st_mtime_ns if (out / "metrics.jsonl").exists() else 0
    while process.poll() is None:
        if (out / "metrics.jsonl").exists() and (out / "metrics.jsonl").stat().st_mtime_ns != seen:
            return
        time.sleep(0.01)


def _everything(out: Path) -> dict[str, object]:
    """All that a run leaves behind, without times."""
    found: dict[str, object] = {}
    for path in sorted(out.glob("stages/*/*.safetensors")):
        if path.name != "previous.safetensors":
            checkpoint = load_checkpoint(path)
            found[str(path.relative_to(out))] = {name: t.numpy().tobytes() for name, t in checkpoint.tensors.items()}
    found["final"] = (out / "final" / "model.safetensors").read_bytes()
    records = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    found["metrics"] = [{k: v for k, v in record.items() if k != "images_per_second"} for record in records]
    return found


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_recipe(tmp_path_factory.mktemp("recipe") / "tiny.toml")


@pytest.fixture(scope="module")
def undisturbed(recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("undisturbed") / "run"
    output = _finish(_start(recipe, out))
    assert "stage2" in output
    return out


@pytest.mark.slow
def test_a_run_killed_again_and_again_ends_with_the_same_bits(recipe: Path, undisturbed: Path, tmp_path: Path) -> None:
    rng, out, kills = random.Random(1), tmp_path / "run", 0
    while kills < KILLS:
        process = _start(recipe, out)
        _wait_for_steps(process, out)
        time.sleep(rng.uniform(0.0, 0.6))
        if process.poll() is not None:
            break
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        kills += 1
    assert kills >= 3, "the run is too short to be killed"
    _finish(_start(recipe, out))
    assert _everything(out) == _everything(undisturbed)


def test_sigterm_saves_says_so_and_the_run_goes_on(recipe: Path, undisturbed: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    for number in (signal.SIGTERM, signal.SIGINT):
        process = _start(recipe, out)
        _wait_for_steps(process, out)
        process.send_signal(number)
        output = _finish(process, 128 + number)
        assert "stopped and saved after step" in output
        assert "Traceback" not in output
    assert "going on at step" in _finish(_start(recipe, out))
    assert _everything(out) == _everything(undisturbed)


def test_a_damaged_checkpoint_is_noticed_and_the_one_before_it_used(
    recipe: Path, undisturbed: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    process = _start(recipe, out)
    while not (out / "stages" / "0-teacher" / "previous.safetensors").exists():
        assert process.poll() is None
        time.sleep(0.005)
    process.kill()
    process.communicate()
    damaged = max(out.glob(f"stages/*/{LAST}"))
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 255
    damaged.write_bytes(content)
    output = _finish(_start(recipe, out))
    assert f"{damaged} is damaged" in output
    assert "previous.safetensors, which is whole" in output
    assert _everything(out) == _everything(undisturbed)


def test_a_full_disk_is_a_clear_error_and_what_was_saved_survives(
    recipe: Path, undisturbed: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    whole = (undisturbed / "stages" / "0-teacher" / LAST).stat().st_size
    output = _finish(_start(recipe, out, limit=2 * whole), expected=1)  # weights fit, the optimizer's state does not
    assert "could not be written" in output
    assert "run the same command again" in output
    assert "Traceback" not in output
    assert not list(out.rglob("*.tmp"))
    _finish(_start(recipe, out))
    assert _everything(out) == _everything(undisturbed)
