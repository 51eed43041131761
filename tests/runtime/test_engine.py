"""The engine as a user meets it."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import ebnet
from ebnet.errors import ConfigError, DataError, NonFiniteError, ShapeError
from ebnet.runtime.preprocessing import Preprocessing
from tests.at_once import at_once
from tests.packing.networks import random_network
from tests.runtime.tiny_file import TinyFile


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    preprocessing = {"size": 16, "resize": 20, "crop": 16, "mean": [0.5, 0.4, 0.3], "std": [0.2, 0.25, 0.3]}
    labels = [f"class {i}" for i in range(7)]
    target = tmp_path_factory.mktemp("engine") / "net.ebn"
    return ebnet.pack(random_network("1111-0.25-1:2:2:2", experts=4), target, "fp32", preprocessing, labels)


@pytest.fixture(scope="module")
def engine(path: Path) -> ebnet.Engine:
    return ebnet.load(path)


def images(batch: int = 3, side: int = 16) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((batch, 3, side, side), dtype=np.float32)


def test_shapes_and_types(engine: ebnet.Engine) -> None:
    logits, experts = engine(images()), engine.experts(images())
    assert (logits.dtype, logits.shape) == (np.float32, (3, 7))
    assert (experts.dtype, experts.shape) == (np.int64, (11, 3))
    assert experts.min() >= 0
    assert experts.max() < 4
    assert engine.classes == 7
    assert "1111-0.25-1:2:2:2" in repr(engine)


def test_torch_tensors_strides_and_other_floats(engine: ebnet.Engine) -> None:
    x = images()
    expected = engine(x)
    tensor = torch.from_numpy(x)
    np.testing.assert_array_equal(engine(tensor), expected)
    np.testing.assert_array_equal(engine(tensor.requires_grad_()), expected)
    np.testing.assert_array_equal(engine(tensor.detach().to(memory_format=torch.channels_last)), expected)
    np.testing.assert_array_equal(engine(x.astype(np.float64)), expected)


def test_bytes_are_normalised_with_the_files_mean_and_std(engine: ebnet.Engine) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (3, 16, 18, 3), dtype=np.uint8)
    mean, std = np.float32([0.5, 0.4, 0.3]), np.float32([0.2, 0.25, 0.3])
    reals = ((pixels.astype(np.float32) / 255 - mean) / std).transpose(0, 3, 1, 2)
    np.testing.assert_allclose(engine(pixels), engine(reals), rtol=1e-3, atol=1e-3)


def test_batches_threads_and_repeats_change_nothing(path: Path, engine: ebnet.Engine) -> None:
    """Deterministic: the same numbers bit for bit alone, in a batch, with more threads, and again."""
    x = images(19, 17)
    expected = engine(x)
    np.testing.assert_array_equal(engine(x), expected)
    np.testing.assert_array_equal(np.concatenate([engine(x[i : i + 1]) for i in range(19)]), expected)
    for threads in (2, 3):
        other = ebnet.load(path, threads=threads)
        assert other.threads == threads
        np.testing.assert_array_equal(other(x), expected)
        np.testing.assert_array_equal(other(x[:1]), expected[:1])


def test_many_threads_share_engines(path: Path) -> None:
    engines = [ebnet.load(path, threads=threads) for threads in (1, 2)]
    inputs = [images(batch, side) for batch, side in ((1, 16), (3, 20), (9, 13))]
    expected = [engines[0](x) for x in inputs]
    wrong = []

    def work(seed: int) -> None:
        for i in range(12):
            which = (seed + i) % 3
            if not np.array_equal(engines[(seed + i) % 2](inputs[which]), expected[which]):
                wrong.append((seed, i))

    at_once(work, 6)
    assert not wrong


def test_a_forked_child_can_run_the_parents_engine(path: Path) -> None:
    """The child has no worker threads; the call runs on its own one."""
    engine = ebnet.load(path, threads=2)
    expected = engine(images())
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(engine(images()), expected) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (np.zeros((0, 3, 16, 16), np.float32), ShapeError, "BatchEmpty"),
        (np.zeros((3, 16, 16), np.float32), ShapeError, r"\[3, 16, 16\]; expected \[batch, 3, height, width\] float32"),
        (np.zeros((1, 4, 16, 16), np.float32), ShapeError, r"\[1, 4, 16, 16\]"),
        (np.zeros((1, 3, 16, 16), np.uint8), ShapeError, r"\[batch, height, width, 3\] uint8"),
        (np.zeros((1, 3, 16, 16), np.int64), ShapeError, "int64"),
        (np.zeros((1, 3, 0, 16), np.float32), ShapeError, "InputSizeInvalid"),
        (np.zeros((1, 3, 1, 9000), np.float32), ShapeError, "InputSizeInvalid"),
        (np.full((1, 3, 16, 16), np.nan, np.float32), NonFiniteError, "NaN or infinity"),
        (np.full((1, 3, 16, 16), np.inf, np.float64), NonFiniteError, "NaN or infinity"),
        ("a string", ShapeError, "expected float32"),
    ],
)
def test_wrong_images(engine: ebnet.Engine, wrong: object, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        engine(wrong)


def test_one_poisoned_pixel_is_found(engine: ebnet.Engine) -> None:
    x = images(4)
    x[2, 1, 7, 7] = -np.inf
    with pytest.raises(NonFiniteError, match="InputNotFinite"):
        engine(x)
    engine(images())


def test_too_large_a_plan_is_refused(engine: ebnet.Engine) -> None:
    with pytest.raises(ShapeError, match="PlanTooLarge"):
        engine(np.zeros((1, 3, 8000, 8000), np.float32))
    engine(images())


@pytest.mark.parametrize("threads", [0, -1, 10_000])
def test_wrong_threads(path: Path, threads: int) -> None:
    with pytest.raises(ConfigError, match=f"threads={threads}"):
        ebnet.load(path, threads=threads)


def test_trace_and_profile_name_every_op(engine: ebnet.Engine) -> None:
    trace = engine.trace(images())
    ops = engine.program
    assert len(trace.values) == len(ops)
    np.testing.assert_array_equal(trace.logits, engine(images()))
    np.testing.assert_array_equal(trace.values[-1].reshape(3, 7), trace.logits)
    profile = engine.profile(images())
    assert [row["kind"] for row in profile] == [op["op"] for op in ops]
    assert all(row["seconds"] >= 0 for row in profile)
    assert [row["kernel"] for row in profile if row["kind"] == "binary"] == engine.kernels


def test_predict(engine: ebnet.Engine, tmp_path: Path) -> None:
    pixels = np.random.default_rng(2).integers(0, 256, (30, 40, 3), dtype=np.uint8)
    file = tmp_path / "a.png"
    Image.fromarray(pixels).save(file)
    found = engine.predict(file, top=3)
    assert found == engine.predict([file, file], top=3)[1]
    assert found.labels == [f"class {i}" for i in found.classes]
    assert found.probabilities == sorted(found.probabilities, reverse=True)
    everything = engine.predict(str(file), top=100)
    assert sum(everything.probabilities) == pytest.approx(1)
    assert len(everything.classes) == 7
    (tmp_path / "b.png").write_text("no picture")
    with pytest.raises(DataError, match=r"b\.png is not a readable image"):
        engine.predict(tmp_path / "b.png")
    with pytest.raises(DataError, match="does not exist"):
        engine.predict(tmp_path / "c.png")


def test_preprocessing_crops_the_centre(tmp_path: Path) -> None:
    pixels = np.zeros((40, 60), np.uint8)
    pixels[5:35, 15:45] = 200
    Image.fromarray(pixels).save(tmp_path / "a.png")
    seen = Preprocessing(15, 40, 30, [0.0], [1.0], 1).read(tmp_path / "a.png")
    assert seen.shape == (15, 15, 1)
    assert (seen[1:-1, 1:-1] == 200).all()
    assert (seen[0] < 200).all()


def test_every_op_of_a_hand_written_file(tmp_path: Path) -> None:
    """Ops the networks never combine this way: a concatenation, no skip, a relu'd chain; all sizes down to 1x1."""
    (tmp_path / "tiny.ebn").write_bytes(TinyFile().content())
    engine = ebnet.load(tmp_path / "tiny.ebn", threads=2)
    for side in (1, 2, 5, 8):
        assert np.isfinite(engine(images(9, side))).all()
