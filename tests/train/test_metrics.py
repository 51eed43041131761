"""What is measured, against counts done by hand."""

import json
from dataclasses import asdict
from types import SimpleNamespace

import pytest
import torch

from ebnet.runs.state import Meter
from ebnet.train.metrics import ExpertUsage, averages, collapsed, top_k


def test_averages_weigh_batches_by_their_size() -> None:
    meter = Meter()
    meter.add(3, loss=1.0, labels=0.5)
    meter.add(1, loss=5.0, labels=0.5)
    assert averages(meter) == {"loss": 2.0, "labels": 0.5}
    assert Meter(**json.loads(json.dumps(asdict(meter)))) == meter


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
    assert collapsed(shares, 0.95) == ["expert 1 of b takes 100.0% of the images"]
    assert collapsed({"a": [0.95, 0.05]}, 0.95) == []
