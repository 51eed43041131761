"""Bootstrap samples by their distribution, and a step of an ensemble against its members trained by hand."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from ebnet.models.network import ExpertBinaryNetwork
from ebnet.models.pretrained import load_pretrained
from ebnet.train import train
from ebnet.train.bagging import bags
from tests.train.test_step import NORMALISE, PLAIN, _batch, _trainer
from tests.train.tiny import pictures, tiny


def times(rows: torch.Tensor, count: int) -> np.ndarray:
    return np.bincount(rows.numpy(), minlength=count)


def test_a_bag_holds_each_image_as_often_as_drawing_with_replacement_does() -> None:
    count = 20000
    first, second = (times(rows, count) for rows in bags(5, 2, np.arange(count)))
    for drawn in (first, second):
        for k in range(5):
            expected = count * math.exp(-1) / math.factorial(k)
            assert abs((drawn == k).sum() - expected) < 5 * math.sqrt(expected)
        assert abs(drawn.sum() - count) < 5 * math.sqrt(count)
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.03


def test_a_bag_is_a_function_of_seed_member_and_image() -> None:
    images = np.arange(100)
    whole = [times(rows, 100) for rows in bags(1, 3, images)]
    shuffled = np.random.default_rng(0).permutation(100)
    for own, part in zip(whole, bags(1, 3, shuffled), strict=True):
        np.testing.assert_array_equal(times(part, 100), own[shuffled])
    assert not np.array_equal(times(bags(2, 3, images)[0], 100), whole[0])


def test_a_member_that_would_see_nothing_sees_the_batch() -> None:
    seen = [len(bags(3, 1, np.arange(index, index + 2))[0]) for index in range(200)]
    assert min(seen) == 2
    assert max(seen) > 4


def test_a_step_is_that_of_each_member_on_its_own_sample() -> None:
    trainer = _trainer(tiny(**PLAIN, network__members=3), "stage1-experts")
    images, labels = _batch(16)
    indices = torch.arange(100, 116)
    own = bags(trainer.recipe.seed, 3, indices.numpy())
    apart = [_single(trainer.network, number) for number in range(3)]
    pixels = NORMALISE.tensor(images)
    losses = [
        F.cross_entropy(member(pixels[rows]), labels[rows], reduction="sum")
        for member, rows in zip(apart, own, strict=True)
    ]
    total = torch.stack(losses).sum() / sum(len(rows) for rows in own)
    total.backward()
    loss = trainer.step(images, labels, 0, indices=indices)["loss"]
    assert abs(loss - float(total.detach())) < 1e-5
    for number, member in enumerate(apart):
        mine = trainer.network.members[number]
        for name, parameter in member.named_parameters():
            torch.testing.assert_close(mine.get_parameter(name).grad, parameter.grad, rtol=1e-4, atol=1e-6, msg=name)


def _single(network: ExpertBinaryNetwork, number: int) -> ExpertBinaryNetwork:
    """A member as a network of its own, which knows nothing of the others."""
    one = ExpertBinaryNetwork(replace(network.config, members=1), network.precision).train()
    prefix = "" if number == 0 else f"others.{number - 1}."
    state = {
        name.removeprefix(prefix): value.clone()
        for name, value in network.state_dict().items()
        if name.startswith(prefix) and (number or not name.startswith("others."))
    }
    one.load_state_dict(state)
    return one


def test_every_phase_of_a_run_with_teachers_and_mixup(tmp_path: Path) -> None:
    final = train(tiny(network__members=2, schedule__batch_size=24), tmp_path / "run", datasets=pictures())
    network = load_pretrained(final.final)
    assert [member.config.experts for member in network.members] == [2, 2]
    assert [str(member.precision) for member in network.members] == ["binary", "binary"]
    weights = [member.classifier.weight for member in network.members]
    assert not torch.equal(*weights)
