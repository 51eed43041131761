"""The networks in the package do what their cards say."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import ebnet
from ebnet import zoo
from ebnet.cli.app import app
from ebnet.cost import profile
from ebnet.data import open_dataset
from ebnet.errors import ConfigError
from ebnet.models.config import NetworkConfig
from ebnet.recipe.settings import load_recipe

NAMES = sorted(path.stem for path in zoo.HOME.glob("*.ebn"))


def run(*words: str, where: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "ebnet", *words], cwd=where, capture_output=True, text=True, check=False
    )


def test_every_network_has_a_card() -> None:
    assert NAMES
    assert sorted(zoo.cards()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_cards_tell_the_truth_about_the_file(name: str) -> None:
    card, engine = zoo.card(name), ebnet.load(f"zoo:{name}")
    network = NetworkConfig.from_dict(engine.network)
    cost = profile(network, card.data["size"])
    assert (card.arch, card.experts) == (str(network.arch), network.experts)
    assert (card.bops, card.flops, card.bytes) == (cost.bops, cost.flops, engine.file_bytes)
    assert card.bytes < 500_000
    assert card.licence
    assert len(engine.labels) == network.num_classes
    recipe = load_recipe(card.recipe, [*card.settings, f"seed={card.seed}"])
    assert (recipe.network.arch, recipe.network.experts) == (card.arch, card.experts)
    assert list(card.stages) == list(recipe.stages)


def test_digits_reach_their_accuracy_in_the_engine(tmp_path: Path) -> None:
    """Of all 1,000 validation digits, by the command that anyone can run."""
    done = run("eval", "zoo:digits-e4", "--json", where=tmp_path)
    assert done.returncode == 0, done.stderr
    found, card = json.loads(done.stdout), zoo.card("digits-e4")
    assert card.pictures == 1000
    assert found["top1"] == pytest.approx(card.top1, abs=1e-9)
    assert card.top1 == pytest.approx(card.stages["stage2"], abs=0.005)
    assert set(map(len, found["usage"].values())) == {card.experts}


def test_a_digit_is_classified_at_once_and_without_torch(tmp_path: Path) -> None:
    from PIL import Image

    from ebnet.data import ArrayDataset, open_dataset

    digits = open_dataset("mnist5k", split="val")
    assert isinstance(digits, ArrayDataset)
    for index in range(0, 1000, 100):
        Image.fromarray(digits.images[index, :, :, 0]).save(tmp_path / f"{index}.png")
    code = "import sys; sys.modules['torch'] = None; from ebnet.cli.app import main; main()"
    words = ["predict", "--model", "digits-e4", "--json", *(f"{index}.png" for index in range(0, 1000, 100))]
    done = subprocess.run(
        [sys.executable, "-c", code, *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    predicted = [entry["classes"][0] for entry in json.loads(done.stdout)]
    assert np.mean(np.array(predicted) == digits.labels[:1000:100]) >= 0.9


def test_wrong_names_and_uses_are_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the zoo has no network called 'digits-e5'; did you mean 'digits-e4'"):
        ebnet.load("zoo:digits-e5")
    assert "for runs" in run("eval", "zoo:digits-e4", "--best", where=tmp_path).stderr
    assert "which images?" in run("predict", "net.ebn", where=tmp_path).stderr


def test_the_list_and_the_cards(tmp_path: Path) -> None:
    assert [card["name"] for card in json.loads(run("zoo", "--json", where=tmp_path).stdout)] == NAMES
    listed = run("zoo", where=tmp_path).stdout
    assert "digits" in listed
    shown = run("zoo", "card", "digits-e4", where=tmp_path).stdout
    assert "ebnet train zoo-digits --set seed=0" in shown
    # Wilson's interval of 985 of 1,000, worked out by hand.
    assert "top-1 98.50% of 1,000 validation images (97.5 to 99.1 at 95 %)" in shown
    assert "0.48 hours" in shown


def test_the_sample_is_a_digit_that_the_network_reads_and_did_not_learn_from(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["zoo", "sample", "-o", str(tmp_path / "digit.png")])
    assert result.exit_code == 0, result.output
    pixels = np.asarray(Image.open(tmp_path / "digit.png"))
    val = open_dataset("mnist5k", split="val")
    (at,) = (i for i in range(len(val)) if (val.image(i)[:, :, 0] == pixels).all())
    answer = ebnet.load("zoo:digits-e4").predict(tmp_path / "digit.png")
    assert answer.labels[0] == str(val.labels[at])
