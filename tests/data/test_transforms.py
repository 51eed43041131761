import io

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from ebnet.data import transforms
from ebnet.data.randomness import uniforms
from ebnet.data.transforms import CentreCrop, Normalise, PadCrop, RandomResizedCrop, Transform, as_picture
from ebnet.errors import ConfigError, ShapeError


def noise(count: int, height: int, width: int, channels: int = 3) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (count, height, width, channels), dtype=np.uint8)


@pytest.mark.parametrize(
    "transform",
    [RandomResizedCrop(16), RandomResizedCrop(40, flip=False), PadCrop(24, padding=3), PadCrop(20), CentreCrop(16, 20)],
)
@pytest.mark.parametrize("channels", [1, 3])
def test_one_at_a_time_and_all_at_once_give_the_same_pixels(transform: Transform, channels: int) -> None:
    images = noise(8, 24, 24, channels)
    u = uniforms(0, 0, np.arange(8), transform.draws)
    together = transform.batch(images, u)
    assert together.shape == (8, transform.size, transform.size, channels)
    for i in range(8):
        assert np.array_equal(transform.picture(as_picture(images[i]), u[i]), together[i])


def test_a_transform_leaves_its_input_alone() -> None:
    images = noise(4, 16, 16)
    before = images.copy()
    for transform in (PadCrop(16), RandomResizedCrop(16), CentreCrop(16)):
        transform.batch(images, uniforms(0, 0, np.arange(4), transform.draws))
    assert np.array_equal(images, before)


@settings(max_examples=40, deadline=None)
@given(width=st.integers(1, 600), height=st.integers(1, 600), seed=st.integers(0, 2**32))
def test_random_boxes_lie_inside_and_have_an_allowed_shape(width: int, height: int, seed: int) -> None:
    crop = RandomResizedCrop(8)
    boxes = crop.boxes(width, height, uniforms(seed, 0, np.arange(50), crop.draws))
    left, top, right, bottom = boxes.T
    assert (left >= 0).all()
    assert (top >= 0).all()
    assert (right <= width).all()
    assert (bottom <= height).all()
    assert ((right - left) / (bottom - top) < 4 / 3 * (1 + 1e-9)).all()
    assert ((right - left) / (bottom - top) > 3 / 4 * (1 - 1e-9)).all()


def test_random_boxes_spread_over_areas_shapes_and_places() -> None:
    crop = RandomResizedCrop(8)
    left, top, right, bottom = crop.boxes(100, 100, uniforms(0, 0, np.arange(4000), crop.draws)).T / 100
    area, shape = (right - left) * (bottom - top), (right - left) / (bottom - top)
    assert area.min() == pytest.approx(0.08, abs=0.01)
    # A box of area a > 3/4 fits a square with probability -ln a / ln(4/3), which makes the mean area 0.4777.
    assert np.mean(area) == pytest.approx(0.4777, abs=0.01)
    assert abs(np.log(shape).mean()) < 0.02
    assert np.mean(left / (1 - (right - left)) < 0.5) == pytest.approx(0.5, abs=0.03)


def test_a_picture_too_long_for_any_box_gives_its_centre() -> None:
    crop = RandomResizedCrop(8, scale=(1.0, 1.0))
    box = crop.boxes(300, 30, uniforms(0, 0, [0], crop.draws))[0]
    assert box.tolist() == [130, 0, 170, 30]


def test_half_of_the_pictures_are_mirrored_and_none_without_flip() -> None:
    images = noise(400, 4, 4)
    u = uniforms(0, 0, np.arange(400), 3)
    flipped = PadCrop(4, padding=0).batch(images, u)
    same = (flipped == images).all((1, 2, 3))
    assert np.array_equal(flipped[~same], images[~same][:, :, ::-1])
    assert 0.4 < same.mean() < 0.6
    assert np.array_equal(PadCrop(4, padding=0, flip=False).batch(images, u), images)


def test_pad_crop_shifts_by_every_distance_and_pads_black() -> None:
    images = np.full((500, 6, 6, 1), 255, np.uint8)
    out = PadCrop(6, padding=2, flip=False).batch(images, uniforms(0, 0, np.arange(500), 3))
    black_rows = (out[:, :, :, 0] == 0).all(2)
    shifts = np.where(black_rows[:, 0], black_rows.sum(1), -black_rows.sum(1))
    assert set(shifts.tolist()) == {-2, -1, 0, 1, 2}
    assert set(np.unique(out)) == {0, 255}


def test_centre_crop_is_resize_then_crop() -> None:
    """Where resizing to 256 and cropping 224 meet no rounding, one step gives what two give, up to one grey level."""
    image = Image.fromarray(noise(1, 512, 640)[0])
    two_steps = image.resize((320, 256), Image.Resampling.BILINEAR).crop((48, 16, 272, 240))
    once = CentreCrop(224, 256).picture(image, np.empty(0))
    assert np.abs(once.astype(int) - np.asarray(two_steps).astype(int)).max() <= 1


def test_large_jpegs_are_decoded_smaller_with_nearly_the_same_outcome() -> None:
    y, x = np.mgrid[0:600, 0:900]
    smooth = np.stack([x * 255 // 900, y * 255 // 600, (x + y) * 255 // 1500], axis=-1).astype(np.uint8)
    out = io.BytesIO()
    Image.fromarray(smooth).save(out, "JPEG", quality=95)
    lazy, decoded = Image.open(io.BytesIO(out.getvalue())), Image.open(io.BytesIO(out.getvalue()))
    decoded.load()
    quick = CentreCrop(56, 64).picture(lazy, np.empty(0))
    assert max(lazy.size) < 900
    exact = CentreCrop(56, 64).picture(decoded, np.empty(0))
    assert np.abs(quick.astype(int) - exact.astype(int)).max() <= 3


def test_normalise_agrees_with_the_formula_in_numpy_and_torch() -> None:
    import torch

    images = noise(2, 5, 4)
    mean, std = (0.4, 0.5, 0.6), (0.1, 0.2, 0.3)
    expected = np.moveaxis((images / 255 - mean) / std, -1, 1)
    normalise = Normalise(mean, std)
    np.testing.assert_allclose(normalise.array(images), expected, rtol=1e-5, atol=1e-6)
    tensor = normalise.tensor(torch.from_numpy(images))
    np.testing.assert_array_equal(tensor.numpy(), normalise.array(images))
    last = normalise.tensor(torch.from_numpy(images), channels_last=True)
    assert last.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(last, tensor)


def test_impossible_settings_are_refused_with_their_values() -> None:
    with pytest.raises(ConfigError, match="resize=200 is smaller than size=224"):
        CentreCrop(224, 200)
    with pytest.raises(ConfigError, match=r"scale=\(0\.5, 0\.1\)"):
        RandomResizedCrop(8, scale=(0.5, 0.1))
    with pytest.raises(ConfigError, match=r"ratio=\(0, 1\)"):
        RandomResizedCrop(8, ratio=(0, 1))
    with pytest.raises(ConfigError, match="padding=-1"):
        PadCrop(8, padding=-1)
    with pytest.raises(ConfigError, match="std positive"):
        Normalise((0.5,), (0.0,))
    with pytest.raises(ShapeError, match="3 channels"):
        Normalise((0.5,), (0.1,)).array(noise(1, 2, 2))


@given(
    st.integers(1, 12),
    st.integers(0, 6),
    st.sampled_from([1, 3, 4]),
    st.booleans(),
    st.integers(0, 2**31),
)
@settings(max_examples=60, deadline=None)
def test_a_batch_of_chosen_images_is_the_same_in_one_native_call(
    size: int, padding: int, channels: int, flip: bool, seed: int
) -> None:
    generator = np.random.default_rng(seed)
    images = generator.integers(0, 256, (7, size, size, channels), np.uint8)
    indices, draws = generator.integers(0, 7, 9), generator.random((9, 3))
    crop = PadCrop(size, padding, flip)
    assert transforms.kernels is not None
    assert np.array_equal(crop.chosen(images, indices, draws), crop.batch(images[indices], draws))


@given(
    st.integers(1, 90),
    st.integers(0, 20),
    st.integers(1, 70),
    st.sampled_from([1, 3]),
    st.floats(0.01, 1.0),
    st.integers(0, 2**31),
)
@settings(max_examples=200, deadline=None)
def test_boxes_are_resized_to_pillows_bytes_in_one_native_call(
    height: int, wider: int, size: int, channels: int, least: float, seed: int
) -> None:
    generator = np.random.default_rng(seed)
    images = generator.integers(0, 256, (4, height, height + wider, channels), np.uint8)
    crop = RandomResizedCrop(size, (least, 1.0))
    indices, draws = generator.integers(0, 4, 6), generator.random((6, crop.draws))
    assert transforms.kernels is not None
    assert np.array_equal(crop.chosen(images, indices, draws), crop.batch(images[indices], draws))


def test_a_box_outside_its_image_is_refused_by_the_native_core() -> None:
    images, out = noise(1, 8, 8), np.empty((1, 4, 4, 3), np.uint8)
    index, flag = np.zeros(1, np.int64), np.zeros(1, np.uint8)
    for box in ([0, 0, 8.5, 8], [-1, 0, 8, 8], [3, 0, 3, 8], [0, float("nan"), 8, 8]):
        with pytest.raises(ValueError, match="a box is empty or does not lie in its image"):
            transforms.kernels.resize(images, index, np.array([box], np.float32), flag, out, 1)


def test_every_pixel_value_is_normalised_to_the_same_bits_in_the_native_core(monkeypatch: pytest.MonkeyPatch) -> None:
    values = torch.arange(256, dtype=torch.uint8).repeat(3, 1).T.reshape(2, 16, 8, 3).contiguous()
    normalise = Normalise((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616))
    native = normalise.tensor(values)
    monkeypatch.setattr(transforms, "kernels", None)
    assert torch.equal(native, normalise.tensor(values))


def test_the_native_crop_refuses_what_does_not_fit() -> None:
    images, indices = np.zeros((2, 4, 4, 3), np.uint8), np.array([0, 1])
    corners, flags, out = np.zeros((2, 2), np.int64), np.zeros(2, np.uint8), np.zeros((2, 4, 4, 3), np.uint8)
    assert transforms.kernels is not None
    transforms.kernels.crop(images, indices, corners, flags, 1, out, 1)
    for bad, message in [
        ((images, indices + 1, corners, flags, 1, out, 1), "not an image's"),
        ((images, indices, corners + 3, flags, 1, out, 1), "beyond the padding"),
        ((images, indices, corners, flags[:1], 1, out, 1), "a flag and room"),
        ((images[:, :3].copy(), indices, corners, flags, 1, out, 1), "size, size"),
    ]:
        with pytest.raises(ValueError, match=message):
            transforms.kernels.crop(*bad)
