"""The routing policy: coupling and gate rate by hand, in one process and with accumulation."""

import pytest
import torch

from ebnet.errors import ConfigError
from ebnet.nn.cond_conv import CondBinaryConv2d
from ebnet.nn.expert_conv import ExpertBinaryConv2d
from ebnet.recipe.settings import parse_recipe
from tests.train.test_step import PLAIN, _batch, _trainer
from tests.train.tiny import VALUES, tiny


def _coupling(**settings: float) -> list[float]:
    recipe = tiny(schedule__epochs=2, **{f"routing__{name}": value for name, value in settings.items()})
    policy = _trainer(recipe, "stage1-experts").routing  # 10 steps an epoch, so 20 in all
    return [policy.coupling(step) for step in (0, 5, 10, 19)]


def test_coupling_falls_linearly_to_zero_at_its_end() -> None:
    assert _coupling(coupling=1.0) == pytest.approx([1.0, 0.75, 0.5, 0.05])
    assert _coupling(coupling=2.0, coupling_end=0.5) == pytest.approx([2.0, 1.0, 0.0, 0.0])
    assert _coupling() == [0.0] * 4


@pytest.mark.parametrize("path", ["native", "torch"])
@pytest.mark.parametrize("parts", [1, 4])
def test_each_expert_learns_from_its_own_gradient_and_a_share_of_all(
    parts: int, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After one step Adam's first moment is a tenth of the gradient it was given."""
    monkeypatch.setenv("EBNET_TRAIN", path)
    gradients = []
    for coupling in (0.0, 0.7):
        changes = {"routing__coupling": coupling, "compute__accumulation": parts, "schedule__weight_decay": 0.0}
        recipe = tiny(**PLAIN | changes, network__experts=3)
        trainer = _trainer(recipe, "stage1-experts")
        trainer.network.eval()
        trainer.step(*_batch(), 0)
        gradients.append(
            {
                name: 10 * trainer.optimizer.state[p]["exp_avg"].double()
                for name, p in trainer.network.named_parameters()
                if p.grad is not None
            }
        )
    alone, together = gradients
    layers = [name for name, m in trainer.network.named_modules() if isinstance(m, ExpertBinaryConv2d)]
    mixing = torch.eye(3, dtype=torch.float64) + 0.7
    for name, gradient in alone.items():
        of_experts = name.endswith(".weight") and name.removesuffix(".weight") in layers
        expected = (mixing @ gradient.reshape(3, -1)).reshape(gradient.shape) if of_experts else gradient
        torch.testing.assert_close(together[name], expected, rtol=1e-5, atol=1e-8)
    assert sum(bool((alone[f"{name}.weight"] != together[f"{name}.weight"]).any()) for name in layers) == len(layers)


@pytest.mark.parametrize(("conv", "kind"), [("expert", ExpertBinaryConv2d), ("cond", CondBinaryConv2d)])
def test_gates_learn_at_their_own_rate(conv: str, kind: type) -> None:
    """Adam's first step is the learning rate times a sign: the same sign, a tenth of the step."""
    moves = []
    for rate in (1.0, 0.1):
        trainer = _trainer(tiny(**PLAIN, routing__gate_rate=rate, network__conv=conv), "stage1-experts")
        before = {name: p.detach().clone() for name, p in trainer.network.named_parameters()}
        trainer.step(*_batch(), 0)
        moves.append({name: p.detach() - before[name] for name, p in trainer.network.named_parameters()})
    gates = {name for name in moves[0] if ".gate." in name or ".routing." in name}
    assert len(gates) == 2 * sum(isinstance(m, kind) for m in trainer.network.modules())
    for name, move in moves[0].items():
        torch.testing.assert_close(moves[1][name], move * (0.1 if name in gates else 1.0), rtol=1e-3, atol=2e-6)


def test_one_expert_is_not_routed() -> None:
    trainer = _trainer(tiny(**PLAIN, routing__gate_rate=0.1, routing__coupling=1.0), "stage1-one-expert")
    assert trainer.factors == [1.0]
    assert trainer.routing.layers == []


def test_optimizer_names_follow_its_groups() -> None:
    trainer = _trainer(tiny(routing__gate_rate=0.1), "stage1-experts")
    by_name = dict(trainer.network.named_parameters())
    listed = [p for group in trainer.optimizer.param_groups for p in group["params"]]
    assert [id(by_name[name]) for name in trainer.names] == [id(p) for p in listed]
    assert sorted(trainer.names) == sorted(by_name)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"coupling": -1}, r"routing.coupling = -1"),
        ({"coupling_end": 0}, r"routing.coupling_end = 0"),
        ({"gate_start": "kmeans"}, r"routing.gate_start = 'kmeans': Input should be 'random' or 'clusters'"),
        ({"gate_rates": 0.1}, r"unknown setting routing.gate_rates; did you mean routing.gate_rate\?"),
    ],
)
def test_wrong_settings_are_named(table: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_recipe(VALUES | {"routing": table})
