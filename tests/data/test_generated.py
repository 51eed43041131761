import numpy as np
import pytest

from ebnet.data import open_dataset, open_generated


def test_it_is_the_same_each_time_and_differs_between_the_splits() -> None:
    a, b, val = open_generated(), open_generated(), open_generated("val")
    assert np.array_equal(a.images, b.images)
    assert (len(a), len(val)) == (1000, 200)
    assert not np.array_equal(a.images[:200], val.images)
    assert len(open_dataset("generated", split="val")) == 200


@pytest.mark.parametrize("channels", [1, 3])
def test_shapes_and_classes_are_as_asked(channels: int) -> None:
    data = open_generated(count=7, num_classes=4, side=12, channels=channels)
    assert data.images.shape == (7, 12, 12, channels)
    assert data.labels.tolist() == [0, 1, 2, 3, 0, 1, 2]
    assert data.classes == ["0 degrees", "45 degrees", "90 degrees", "135 degrees"]


def test_a_longer_set_begins_with_the_shorter_one() -> None:
    assert np.array_equal(open_generated(count=20).images[:5], open_generated(count=5).images)


def test_the_classes_can_be_learnt() -> None:
    """Spectra, which do not see the random phase, tell the directions apart; raw pixels' means do not."""

    def spectra(images: np.ndarray) -> np.ndarray:
        return np.abs(np.fft.rfft2(images.mean(-1) - 128)).reshape(len(images), -1)

    train, val = open_generated(), open_generated("val")
    centres = np.stack([spectra(train.images[train.labels == c]).mean(0) for c in range(10)])
    distances = ((spectra(val.images)[:, None] - centres) ** 2).sum(-1)
    assert (distances.argmin(1) == val.labels).mean() > 0.8
    means = train.images.mean((1, 2, 3))
    per_class = [means[train.labels == c].mean() for c in range(10)]
    assert np.std(per_class) < 2


def test_the_statistics_are_those_of_the_pixels() -> None:
    data = open_generated()
    np.testing.assert_allclose((data.images / 255).mean((0, 1, 2)), data.statistics.mean, atol=0.01)
    np.testing.assert_allclose((data.images / 255).std((0, 1, 2)), data.statistics.std, atol=0.01)
