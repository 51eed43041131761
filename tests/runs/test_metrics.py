"""`metrics.jsonl` through crashes and restarts."""

import json
from pathlib import Path

import pytest

from ebnet.errors import CheckpointError
from ebnet.runs.metrics import MetricsLog, read_metrics


def test_the_log_forgets_what_is_going_to_be_repeated(tmp_path: Path) -> None:
    log = MetricsLog(tmp_path / "metrics.jsonl")
    log.write({"step": 1})
    position = log.position()
    log.write({"step": 2})
    log.rewind(position)
    log.write({"step": 3})
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [1, 3]


def test_tensorboard_gets_the_numbers(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    log = MetricsLog(tmp_path / "metrics.jsonl", tmp_path / "tensorboard")
    log.write({"stage": "stage2", "step": 7, "epoch": 1, "val": {"top1": 0.5}, "usage": {"a": [0.25, 0.75]}})
    log.close()
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert [(e.step, e.value) for e in events.Scalars("stage2/val/top1")] == [(7, 0.5)]
    assert [e.value for e in events.Scalars("stage2/usage/a/1")] == [0.75]


@pytest.mark.parametrize("torn", ['{"step": 2, "train": {"loss": 1.0}', '{"step": 2', '{"step": 2, "note": "\xc3'])
def test_a_torn_last_line_is_left_out(tmp_path: Path, torn: str) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"step": 1}\n' + torn.encode("latin-1"))
    assert read_metrics(path) == [{"step": 1}]


def test_damage_before_the_last_line_is_told(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 1}\n{"step": {2}}\n{"step": 3}\n')
    with pytest.raises(CheckpointError, match=r"line 2 of .*metrics\.jsonl is damaged"):
        read_metrics(path)
