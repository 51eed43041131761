"""Many processes do what one does."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from ebnet.errors import ConfigError
from ebnet.train import distributed
from ebnet.train.distributed import part_of_batch
from tests.train.tiny import write_recipe

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


def _run(command: list[str]) -> str:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_two_processes_take_the_same_step_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gradients of coupled experts, statistics, losses, gates from clusters and what an outside teacher says.

    Both by torch's kernels: layers with synced statistics always are, and what the native ones round otherwise is not
    the question here (tests/nn asks it). Whole runs drift apart through rounding: Adam turns a gradient of 1e-9 into a
    full step of either sign.
    """
    monkeypatch.setenv("EBNET_TRAIN", "torch")
    script = ["-m", "tests.train.step_on_ranks"]
    _run([sys.executable, *script, str(tmp_path / "one")])
    _run([*TORCHRUN, *script, str(tmp_path / "two")])
    one, two = load_file(tmp_path / "one"), load_file(tmp_path / "two")
    assert one.keys() == two.keys()
    assert sum(name.startswith("gradient") for name in one) > 50
    assert sum(name.startswith("gate") for name in one) > 10
    for name, value in one.items():
        torch.testing.assert_close(two[name], value, rtol=1e-3, atol=2e-5, msg=lambda m, name=name: f"{name}: {m}")


@pytest.mark.slow
def test_torchrun_trains_all_stages(tmp_path: Path) -> None:
    recipe = write_recipe(tmp_path / "tiny.toml", schedule__epochs=1, schedule__learning_rate=1e-4)
    _run([sys.executable, "-m", "ebnet", "train", str(recipe), "--out", str(tmp_path / "one")])
    output = _run([*TORCHRUN, "-m", "ebnet", "train", str(recipe), "--out", str(tmp_path / "two"), "--json"])
    assert list(json.loads(output)["stages"]) == ["teacher", "stage1-one-expert", "stage1-experts", "stage2"]
    one, two = (
        [json.loads(line) for line in (tmp_path / name / "metrics.jsonl").read_text().splitlines()]
        for name in ("one", "two")
    )
    assert [(r["kind"], r["stage"], r["step"]) for r in one] == [(r["kind"], r["stage"], r["step"]) for r in two]
    for a, b in zip(one, two, strict=True):
        assert a["train"]["loss"] == pytest.approx(b["train"]["loss"], rel=0.01)
    teacher = [record for record in zip(one, two, strict=True) if record[0]["stage"] == "teacher"]
    assert all(a["train"]["loss"] == pytest.approx(b["train"]["loss"], rel=1e-4) for a, b in teacher)


def test_a_batch_that_cannot_be_split_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributed, "world_size", lambda: 3)
    assert part_of_batch(12, 2) == 2
    with pytest.raises(ConfigError, match="batch_size = 100 cannot be split into 3 processes x 2 accumulated parts"):
        part_of_batch(100, 2)
