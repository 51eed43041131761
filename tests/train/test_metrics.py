"""What is measured, against counts done by hand."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from ebnet.train.metrics import ExpertUsage, Meter, MetricsLog, collapsed, top_k


def test_averages_weigh_batches_by_their_size() -> None:
    meter = Meter()
    meter.add(3, loss=1.0, labels=0.5)
    meter.add(1, loss=5.0, labels=0.5)
    assert meter.averages() == {"loss": 2.0, "labels": 0.5}
    assert Meter(**json.loads(json.dumps(meter.to_dict()))) == meter


def test_top_one_and_top_five() -> None:
    logits = torch.eye(8)[[0, 1, 2]] * 2 + torch.linspace(0.7, 0.0, 8)  # first: the diagonal, then the lowest indices
    assert top_k(logits, torch.tensor([0, 2, 7])) == pytest.approx((1 / 3, 2 / 3))
    assert top_k(torch.tensor([[0.0, 1.0]]), torch.tensor([0])) == (0.0, 1.0)


def test_expert_usage_and_its_warning() -> None:
    layers = {
        "a": SimpleNamespace(num_experts=3, last_experts=torch.tensor([0, 0, 2, 0])),
        "b": SimpleNamespace(num_experts=2, last_experts=torch.tensor([1, 1, 1, 1])),
        "one": SimpleNamespace(num_experts=1, last_experts=torch.tensor([0, 0, 0, 0])),
        "unused": SimpleNamespace(num_experts=2, last_experts=None),
    }
    usage = ExpertUsage()
    usage.add(layers)
    layers["a"].last_experts = torch.tensor([1, 2, 2, 2])
    usage.add(layers)
    shares = usage.shares()
    assert shares == {"a": [0.375, 0.125, 0.5], "b": [0.0, 1.0]}
    assert collapsed(shares, 0.95) == ["expert 1 of b takes 100.0% of the pictures"]
    assert collapsed({"a": [0.95, 0.05]}, 0.95) == []


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
