"""One training step: the optimizer by hand, accumulation, experts nobody asks for."""

import pytest
import torch

from ebnet.data import Normalise
from ebnet.errors import NonFiniteError
from ebnet.models.network import ExpertBinaryNetwork
from ebnet.recipe.settings import PhaseName, Recipe
from ebnet.train.loop import Trainer
from ebnet.train.phases import PHASES
from tests.train.tiny import tiny

NORMALISE = Normalise((0.5,) * 3, (0.2,) * 3)
PLAIN = {"schedule__mixup": 0.0, "schedule__warmup_epochs": 0.0, "schedule__milestones": (), "stage": {}}


def _trainer(recipe: Recipe, name: PhaseName, teacher: ExpertBinaryNetwork | None = None) -> Trainer:
    torch.manual_seed(0)
    stage = PHASES[name]
    network = ExpertBinaryNetwork(stage.config(recipe, 10, 3), stage.precision)
    return Trainer(network, teacher, stage, recipe, 10, NORMALISE, torch.device("cpu"))


def _batch(count: int = 8) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    images = torch.randint(0, 256, (count, 8, 8, 3), dtype=torch.uint8, generator=generator)
    return images, torch.arange(count) % 10


def test_weight_decay_is_adams_l2_term_on_every_parameter() -> None:
    rate, decay, epsilon = 0.01, 0.3, 1e-8
    trainer = _trainer(tiny(**PLAIN, schedule__learning_rate=rate, schedule__weight_decay=decay), "stage1-experts")
    before = {name: parameter.detach().clone() for name, parameter in trainer.network.named_parameters()}
    trainer.step(*_batch(), 0)
    for name, parameter in trainer.network.named_parameters():
        assert parameter.grad is not None
        # Adam's first step: both bias-corrected averages are those of g = gradient + decay * w alone.
        g = parameter.grad + decay * before[name]
        torch.testing.assert_close(parameter.detach(), before[name] - rate * g / (g.abs() + epsilon), rtol=0, atol=2e-5)


def test_the_learning_rate_follows_the_schedule() -> None:
    trainer = _trainer(tiny(schedule__learning_rate=0.1, schedule__warmup_epochs=1.0, schedule__epochs=3), "teacher")
    rates = []
    for step in (0, 9, 14, 15):
        trainer.step(*_batch(), step)
        rates.append(trainer.optimizer.param_groups[0]["lr"])
    assert rates == pytest.approx([0.01, 0.1, 0.1, 0.01])


def test_accumulated_parts_add_up_to_the_whole_batch() -> None:
    gradients = []
    for parts in (1, 4):
        trainer = _trainer(tiny(**PLAIN, compute__accumulation=parts), "stage1-experts")
        trainer.network.eval()  # with fixed statistics; in training each part is normalised by its own
        terms = trainer.step(*_batch(), 0)
        gradients.append([parameter.grad for parameter in trainer.network.parameters()])
    for whole, added in zip(*gradients, strict=True):
        torch.testing.assert_close(whole, added, rtol=1e-4, atol=1e-6)
    assert terms["loss"] == terms["labels"]


def test_mixup_reaches_the_loss() -> None:
    losses = []
    for alpha in (0.0, 0.2):
        trainer = _trainer(tiny(**(PLAIN | {"schedule__mixup": alpha})), "teacher")
        losses.append([trainer.step(*_batch(), 5)["loss"] for _ in range(1)])
    assert losses[0] != losses[1]


@pytest.mark.parametrize("name", ["stage1-experts", "stage2"])
def test_dead_experts_and_empty_batches_of_experts_train(name: PhaseName) -> None:
    trainer = _trainer(tiny(**PLAIN, schedule__weight_decay=0.0), name)
    layers = trainer.network.binary_layers()
    with torch.no_grad():
        for layer in layers.values():
            layer.gate.linear.bias[1] = 100.0  # type: ignore[union-attr, operator, index]
    before = {key: layer.expert_weights.detach().clone() for key, layer in layers.items()}  # type: ignore[operator]
    for step in range(3):
        assert trainer.step(*_batch(), step)["loss"] > 0
    for key, layer in layers.items():
        assert layer.last_experts.tolist() == [1] * 8  # type: ignore[union-attr, operator]
        moved = [not torch.equal(a, b) for a, b in zip(before[key], layer.expert_weights, strict=True)]  # type: ignore[arg-type]
        assert moved == [False, True]


def test_a_loss_that_is_no_number_stops_before_the_weights_change() -> None:
    trainer = _trainer(tiny(**PLAIN), "teacher")
    with torch.no_grad():
        trainer.network.classifier.bias[0] = float("nan")
    weight = trainer.network.classifier.weight.detach().clone()
    with pytest.raises(NonFiniteError, match=r"step 4 of teacher .*lower stage.teacher.learning_rate"):
        trainer.step(*_batch(), 4)
    assert torch.equal(weight, trainer.network.classifier.weight)
