"""SAMME by hand, and an ensemble boosted on a tiny set."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

import ebnet
from ebnet.data import open_generated
from ebnet.data.resampled import _Resampled, resampled
from ebnet.errors import ConfigError
from ebnet.models.ensemble import joined
from ebnet.models.pretrained import load_pretrained
from ebnet.packing.verify import verify
from ebnet.recipe.settings import Recipe
from ebnet.train.boosting import boost, next_round, wrong
from ebnet.train.pictures import Pictures
from tests.train.tiny import pictures, tiny


def small() -> Recipe:
    one = {"stages": ["stage1-one-expert", "stage2"], "stage": {}, "network__experts": 1, "network__scaling": False}
    return tiny(**one, schedule__batch_size=16, schedule__epochs=1)


def test_weights_and_votes_by_hand() -> None:
    missed = np.array([True, False, False, True, False])
    alpha, weights = next_round(np.array([0.1, 0.2, 0.3, 0.1, 0.3]), missed, 3)
    # err = 0.2, so alpha = ln(4) + ln(2) = ln(8): the wrong ones weigh 8 times as much.
    assert alpha == pytest.approx(math.log(8))
    np.testing.assert_allclose(weights, np.array([0.8, 0.2, 0.3, 0.8, 0.3]) / 2.4)
    # Its mark: by the new weights the member is as good as chance.
    assert weights[missed].sum() == pytest.approx(1 - 1 / 3)


def test_a_member_without_faults_and_one_that_guesses() -> None:
    even = np.full(10, 0.1)
    alpha, weights = next_round(even, np.zeros(10, bool), 4)
    assert alpha == pytest.approx(math.log(19) + math.log(3))
    np.testing.assert_allclose(weights, even)
    for missed in (np.ones(10, bool), np.arange(10) < 8):
        alpha, weights = next_round(np.arange(10) / 45, missed[::-1], 4)
        assert alpha == 0
        np.testing.assert_allclose(weights, even)


def test_drawn_pictures() -> None:
    data = open_generated("train", 20, side=8)
    rows = np.array([3, 3, 0])
    drawn, streamed = resampled(data, rows), _Resampled(data, rows)
    for some in (drawn, streamed):
        np.testing.assert_array_equal(some.labels, data.labels[rows])
        assert len(some) == 3
        np.testing.assert_array_equal(some.image(1), data.image(3))
    assert streamed.source(2) == data.source(0)


def test_a_boosted_ensemble(tmp_path: Path) -> None:
    final = boost(small(), tmp_path / "run", 2, datasets=pictures())
    ensemble = load_pretrained(final)
    members = [load_pretrained(tmp_path / "run" / f"member{number}" / "final") for number in range(2)]
    seen = Pictures.open(small().data, pictures())
    classes = seen.train.num_classes
    first, weights = next_round(np.full(48, 1 / 48), wrong(members[0], seen), classes)
    second, _ = next_round(weights, wrong(members[1], seen), classes)
    votes = [first, second] if first + second > 0 else [1.0, 1.0]
    images = torch.randn(5, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    expected = sum(vote * one(images) for vote, one in zip(votes, members, strict=True)) / sum(votes)
    torch.testing.assert_close(ensemble(images), expected, rtol=1e-4, atol=1e-5)
    engine = ebnet.load(ebnet.pack(ensemble, tmp_path / "net.ebn"))
    assert verify(engine, ensemble, images.numpy()).passed
    # Finished members are not trained again.
    before = (final / "model.safetensors").read_bytes()
    assert boost(small(), tmp_path / "run", 2, datasets=pictures()) == final
    assert (final / "model.safetensors").read_bytes() == before


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="boosting needs a recipe that ends with stage2"):
        boost(small().changed({"stages": ["stage1-one-expert"]}), tmp_path, 2, datasets=pictures())
    model = ebnet.create_model("1111-0.0625-1:1:1:1", stem="cifar")
    with pytest.raises(ConfigError, match="expected one each, none below 0, some above"):
        joined([model, model], [1.0, -1.0])
    with pytest.raises(ConfigError, match="single networks of one structure"):
        joined([model, ebnet.create_model("1111-0.125-1:1:1:1", stem="cifar")])
