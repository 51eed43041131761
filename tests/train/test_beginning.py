"""Fine-tuning: a run that begins with a trained network."""

import json
import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn import functional as F

import ebnet
from ebnet.data import open_dataset
from ebnet.errors import CheckpointError, ConfigError
from ebnet.recipe.settings import load_recipe
from ebnet.train.beginning import begin_with, retake_statistics
from ebnet.train.fitting import fitted
from ebnet.train.phases import PHASES
from tests.packing.networks import random_network

STAGE2 = PHASES["stage2"]
NETWORK = {"arch": "1111-0.25-1:1:1:2", "experts": 2, "stem": "cifar"}


def images(count: int) -> torch.Tensor:
    return torch.randn(count, 3, 16, 16, generator=torch.Generator().manual_seed(1))


def test_statistics_are_the_images_and_the_function_stays(tmp_path: Path) -> None:
    network = ebnet.unpack(ebnet.pack(random_network(**NETWORK), tmp_path / "net.ebn")).double()
    seen = images(300).double()
    with torch.no_grad():
        before = network(seen)
        first = F.conv2d(seen, network.stem.conv.conv.weight, padding=1)
        retake_statistics(network, seen)
        torch.testing.assert_close(network(seen), before)
    norm = network.stem.conv.norm
    torch.testing.assert_close(norm.running_mean, first.mean((0, 2, 3)))
    torch.testing.assert_close(norm.running_var, first.var((0, 2, 3), unbiased=False))


def test_the_first_step_is_taken_by_the_same_network(tmp_path: Path) -> None:
    """In training mode norms take the batch's statistics: with those of the file little of it would be left."""
    network = ebnet.unpack(ebnet.pack(random_network(**NETWORK), tmp_path / "net.ebn"))
    seen = images(300)
    with torch.no_grad():
        before = network(seen)
        retake_statistics(network, seen)
        after = network.train()(seen)
    torch.testing.assert_close(after, before, rtol=1e-3, atol=1e-3)


def test_all_but_the_classifier_is_kept(tmp_path: Path) -> None:
    source = str(ebnet.pack(random_network(**NETWORK), tmp_path / "net.ebn"))
    trained = ebnet.unpack(source)
    same = begin_with(source, trained.config, STAGE2, 0).state_dict()
    other = begin_with(source, replace(trained.config, num_classes=3), STAGE2, 0).state_dict()
    assert other["classifier.weight"].shape[0] == 3
    for name, tensor in trained.state_dict().items():
        assert torch.equal(same[name], tensor)
        assert name.startswith("classifier.") or torch.equal(other[name], tensor)


def test_another_structure_is_told(tmp_path: Path) -> None:
    source = str(ebnet.pack(random_network(**NETWORK), tmp_path / "net.ebn"))
    config = replace(ebnet.unpack(source).config, in_channels=1, stem="imagenet")
    with pytest.raises(CheckpointError, match="in_channels is 3, not 1, stem is 'cifar', not 'imagenet'"):
        begin_with(source, config, STAGE2, 0)


def test_a_network_is_trained_further_or_taken_as_it_is() -> None:
    with pytest.raises(ConfigError, match="start trains a given network further, checkpoint does not"):
        load_recipe("fine-tune", ["stage.stage2.start=a", "stage.stage2.checkpoint=b"])


def write_digits(root: Path, count: int) -> Path:
    """Digits as files of colour images."""
    for split, number in (("train", count), ("val", 500)):
        digits = open_dataset("mnist5k", split=split)
        for index in np.linspace(0, len(digits) - 1, number).astype(int).tolist():
            folder = root / split / f"digit {digits.labels[index]}"
            folder.mkdir(parents=True, exist_ok=True)
            Image.fromarray(digits.image(index)[:, :, 0]).convert("RGB").save(folder / f"{index}.png")
    return root


def test_the_run_takes_over_structure_and_size(tmp_path: Path) -> None:
    root = write_digits(tmp_path, 20)
    start = {"data.root": str(root), "stage.stage2.start": "zoo:imagenette-e4"}
    recipe = fitted(load_recipe("fine-tune", start))
    engine = ebnet.load("zoo:imagenette-e4")
    assert recipe.network.arch == engine.network["arch"]
    assert recipe.network.stem_width == engine.network["stem_width"]
    assert (recipe.data.size, list(recipe.data.mean or ())) == (32, engine.preprocessing.mean)
    assert fitted(recipe) == recipe


def test_a_network_for_grey_images_is_told(tmp_path: Path) -> None:
    start = {"data.root": str(write_digits(tmp_path, 20)), "stage.stage2.start": "zoo:digits-e4"}
    with pytest.raises(CheckpointError, match=r"zoo:digits-e4 sees images of 1 channels, and those of .* have 3"):
        fitted(load_recipe("fine-tune", start))


def test_without_a_network_there_is_nothing_to_tune() -> None:
    command = [sys.executable, "-m", "ebnet", "train", "fine-tune", "--data", "photos"]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    assert outcome.returncode == 2
    assert "which network is to be fine-tuned?" in outcome.stderr


@pytest.mark.slow
def test_600_images_in_two_minutes(tmp_path: Path) -> None:
    """As documented, by processor time: a network of photographs learns 600 digits."""
    data = write_digits(tmp_path / "own", 600)
    command = [sys.executable, "-m", "ebnet", "train", "fine-tune", "--start", "zoo:imagenette-e4", "--json"]
    command += ["--data", str(data), "--out", str(tmp_path / "run"), "--set", "data.flip=false"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 2 * 120
    assert result["stages"]["stage2"]["top1"] > 0.85
    path = tmp_path / "net.ebn"
    subprocess.run([sys.executable, "-m", "ebnet", "pack", str(tmp_path / "run"), "-o", str(path)], check=True)
    engine = ebnet.load(path)
    files = sorted((data / "val").rglob("*.png"))
    told = [found.labels[0] == f.parent.name for f, found in zip(files, engine.predict(files), strict=True)]
    assert np.mean(told) > 0.85
    assert len(told) == 500
