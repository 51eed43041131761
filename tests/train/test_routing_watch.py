"""Churn, usage, margin and distance, counted by hand; and what is said about them."""

import json
from pathlib import Path

import pytest
import torch

from ebnet.models.network import ExpertBinaryNetwork
from ebnet.recipe.settings import Routing
from ebnet.train import train
from ebnet.train.gate_start import expert_layers
from ebnet.train.phases import PHASES
from ebnet.train.routing_watch import RoutingWatch, advice, as_record, mean_churn
from tests.train.tiny import pictures, tiny

SMALL = {"schedule__batch_size": 16, "schedule__epochs": 2}


def _network() -> ExpertBinaryNetwork:
    torch.manual_seed(0)
    stage = PHASES["stage1-experts"]
    return ExpertBinaryNetwork(stage.config(tiny(network__experts=3), 10, 3), stage.precision)


def test_what_is_seen_is_what_the_layers_do() -> None:
    network, pixels = _network(), torch.randn(30, 3, 8, 8)
    watch = RoutingWatch(network, pixels)
    assert all(layer.churn is None for layer in watch.look().values())
    before = network.experts(pixels)
    with torch.no_grad():
        for layer in expert_layers(network).values():
            assert layer.gate is not None
            layer.gate.linear.weight.add_(0.3 * torch.randn_like(layer.gate.linear.weight))
    seen, after = watch.look(), network.experts(pixels)
    assert list(seen) == list(expert_layers(network))
    for row, (name, layer) in enumerate(seen.items()):
        assert layer.churn == pytest.approx((before[row] != after[row]).double().mean().item())
        assert layer.usage == pytest.approx([(after[row] == e).double().mean().item() for e in range(3)])
        w = expert_layers(network)[name].expert_weights.detach().flatten(1)
        apart = sum((w[i] - w[j]).norm() for i, j in ((0, 1), (0, 2), (1, 2))) / 3
        assert layer.distance == pytest.approx((apart / w.norm(dim=1).mean()).item(), rel=1e-5)
    assert sum(layer.churn or 0.0 for layer in seen.values()) > 0


def test_the_margin_is_the_lead_of_the_best_score() -> None:
    network, pixels = _network(), torch.randn(5, 3, 8, 8)
    for layer in expert_layers(network).values():
        assert layer.gate is not None
        torch.nn.init.zeros_(layer.gate.linear.weight)
        layer.gate.linear.bias.data = torch.tensor([0.5, 2.0, 1.25])
    seen = RoutingWatch(network, pixels).look()
    assert all(layer.margin == pytest.approx(0.75) and layer.usage == [0.0, 1.0, 0.0] for layer in seen.values())


def test_every_epoch_of_several_experts_is_in_the_metrics(tmp_path: Path) -> None:
    train(tiny(**SMALL, log__validate_epochs=2), tmp_path / "run", datasets=pictures())
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    for line in (line for line in lines if line["kind"] == "epoch"):
        if line["stage"] in ("stage1-experts", "stage2"):
            # Weights that have just become binary have no past to be compared with.
            past = set() if line["stage"] == "stage2" and line["epoch"] == 0 else {"churn"}
            assert all(layer.keys() == past | {"usage", "margin", "distance"} for layer in line["routing"].values())
        else:
            assert "routing" not in line


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (Routing(), 'set routing.gate_start = "clusters", routing.gate_rate = 0.1, routing.coupling = 1'),
        (Routing(gate_start="clusters", coupling=0.5), "set routing.gate_rate = 0.1"),
        (Routing(gate_start="clusters", coupling=1, gate_rate=0.1), "lower routing.gate_rate or the learning rate"),
    ],
)
def test_churn_is_answered_with_the_settings_that_help(settings: Routing, said: str) -> None:
    restless = {"a": {"churn": 0.5, "distance": 0.3}, "b": {"churn": 0.1, "distance": 0.3}}
    assert mean_churn(restless) == pytest.approx(0.3)
    (sentence,) = advice(restless, settings, 0.25, last=False)
    assert sentence.startswith("30% of the images change expert")
    assert sentence.endswith(said)
    assert advice(restless, settings, 0.4, last=True) == []


def test_equal_experts_are_told_at_the_end() -> None:
    record = {"a": {"distance": 0.001}, "b": {"distance": 0.3}}
    assert advice(record, Routing(coupling=1), 0.25, last=False) == []
    (sentence,) = advice(record, Routing(coupling=1), 0.25, last=True)
    assert "the experts of a are nearly equal" in sentence
    assert "routing.coupling_end" in sentence


def test_a_look_without_a_past_has_no_churn() -> None:
    record = as_record(RoutingWatch(_network(), torch.randn(4, 3, 8, 8)).look())
    assert all("churn" not in layer for layer in record.values())
    assert mean_churn(record) is None
