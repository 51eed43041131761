"""The npm package in Node: the native engine's answers, Pillow's pixels, Python's errors."""

from __future__ import annotations

import base64
import gzip
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import PIL
import pytest
from PIL import Image

import ebnet
from ebnet import zoo
from ebnet.errors import FormatError
from ebnet.runtime.preprocessing import Preprocessing
from tests.runtime.tiny_file import TinyFile
from tests.web.node import STATIC, node

ROOT = Path(__file__).resolve().parents[2]
RUN = """
const net = await load(path);
const ran = await net.run(new Uint8Array(Buffer.from(pixels, "base64")), { batch });
tell({ ...ran, logits: Array.from(ran.logits), isa: net.isa, layers: net.layers, labels: net.labels });
"""


def encoded(array: np.ndarray) -> str:
    return base64.b64encode(array.tobytes()).decode()


@pytest.mark.parametrize("name", sorted(zoo.cards()))
def test_networks_of_the_zoo_say_what_the_native_engine_says(name: str) -> None:
    engine = ebnet.load(f"zoo:{name}")
    side, channels = engine.preprocessing.size, engine.preprocessing.in_channels
    pixels = np.random.default_rng(1).integers(0, 256, (3, side, side, channels), dtype=np.uint8)
    expected = engine.run(pixels)
    said = node(RUN, path=engine.path, pixels=encoded(pixels), batch=3)
    logits = np.array(said["logits"]).reshape(expected.logits.shape)
    np.testing.assert_allclose(logits, expected.logits, rtol=1e-5, atol=1e-5 * np.abs(expected.logits).max())
    assert np.array_equal(np.reshape(said["experts"], expected.experts.shape), expected.experts)
    assert said["isa"] == "simd128"
    assert [layer["name"] for layer in said["layers"]] == engine.layers
    assert [layer["experts"] for layer in said["layers"]] == engine.expert_counts
    assert said["labels"] == engine.labels


def images() -> dict[str, Image.Image]:
    random = np.random.default_rng(2)

    def noise(height: int, width: int, channels: int) -> np.ndarray:
        coarse = random.integers(0, 256, (height // 8 + 2, width // 8 + 2, channels), dtype=np.uint8)
        fine = random.integers(-20, 20, (height, width, channels))
        return np.clip(np.kron(coarse, np.ones((8, 8, 1)))[:height, :width] + fine, 0, 255).astype(np.uint8)

    return {
        "colour": Image.fromarray(noise(97, 211, 3)),
        "tall": Image.fromarray(noise(211, 97, 3)),
        "not so tall": Image.fromarray(noise(120, 97, 3)),
        "grey": Image.fromarray(noise(31, 64, 1)[:, :, 0]),
        "transparent": Image.fromarray(noise(120, 160, 4), "RGBA"),
        "as it is": Image.fromarray(noise(28, 28, 3)),
        "one pixel": Image.fromarray(noise(1, 1, 3)),
        "upwards": Image.fromarray(noise(9, 11, 4), "RGBA"),
    }


@pytest.mark.parametrize("name", images())
@pytest.mark.parametrize("channels", [1, 3])
def test_pixels_are_pillows_to_the_last_bit(name: str, channels: int) -> None:
    if name == "tall" and int(PIL.__version__.split(".")[0]) < 13:
        pytest.skip("Pillow resizes tall images columns first from version 13 on")
    image = images()[name]
    how = Preprocessing(28, 32, 28, [0.0] * channels, [1.0] * channels, channels)
    if name == "as it is":
        how = Preprocessing(28, 28, 28, [0.0] * channels, [1.0] * channels, channels)
    rgba = np.asarray(image.convert("RGBA"))
    script = f"""
    const {{ fit }} = await import({json.dumps((ROOT / "web" / "src" / "pixels.js").as_uri())});
    const image = {{ data: new Uint8ClampedArray(Buffer.from(pixels, "base64")), width, height }};
    tell([false, true].map((invert) => Array.from(fit(image, how, invert))));
    """
    settings = {"size": how.size, "resize": how.resize, "crop": how.crop, "in_channels": channels}
    plain, inverted = node(script, pixels=encoded(rgba), width=image.width, height=image.height, how=settings)
    assert plain == how.fit(image).ravel().tolist()
    assert inverted == how.fit(image, invert=True).ravel().tolist()


def test_predict_tells_classes_probabilities_and_experts() -> None:
    engine = ebnet.load("zoo:digits-e4")
    image = np.random.default_rng(3).integers(0, 256, (40, 33), dtype=np.uint8)
    script = """
    const net = await load(path);
    const answer = await net.predict({ data: Buffer.from(pixels, "base64"), width, height }, { top: 3 });
    tell({ ...answer, logits: Array.from(answer.logits) });
    """
    said = node(script, path=engine.path, pixels=encoded(image), width=33, height=40)
    run = engine.run(engine.preprocessing.fit(Image.fromarray(image))[None])
    best = engine.predictions(run.logits, 3)[0]
    assert (said["classes"], said["labels"], said["label"]) == (best.classes, best.labels, best.labels[0])
    assert said["probabilities"] == pytest.approx(best.probabilities, rel=1e-4)
    assert [layer["chosen"] for layer in said["experts"]] == run.experts[:, 0].tolist()
    assert said["milliseconds"] > 0


def test_bad_files_have_pythons_errors(tmp_path: Path) -> None:
    good = TinyFile().content()
    damaged = [b"", good[:500], good[:-3], good.replace(b"binary", b"binarx"), good[:8] + b"x" + good[9:]]
    script = """
    const errors = [];
    for (const file of files) {
      try {
        await load(Buffer.from(file, "base64"));
      } catch (fault) {
        errors.push([fault instanceof EbnetError, fault.code, fault.message]);
      }
    }
    tell(errors);
    """
    said = node(script, files=[base64.b64encode(content).decode() for content in damaged])
    for content, (is_ours, code, message) in zip(damaged, said, strict=True):
        (tmp_path / "bad.ebn").write_bytes(content)
        with pytest.raises(FormatError) as error:
            ebnet.load(tmp_path / "bad.ebn")
        assert is_ours
        assert code in str(error.value)
        assert message in str(error.value)


def test_calls_are_refused_in_sentences(tmp_path: Path) -> None:
    script = """
    const net = await load(path);
    const calls = [
      () => load("/nowhere.ebn"),
      () => net.predict({ data: new Uint8Array(10), width: 3, height: 2 }),
      () => net.predict("cat.png"),
      () => net.run(new Uint8Array(5)),
      () => net.run([1, 2, 3]),
      () => net.run(new Float32Array(28 * 28).fill(NaN)),
      () => net.run(new Uint8Array(1), { height: 1, width: 1 }),
    ];
    const errors = [];
    for (const call of calls) await call().catch((fault) => errors.push([fault.name, fault.code, fault.message]));
    net.close();
    await net.run(new Uint8Array(28 * 28)).catch((fault) => errors.push([fault.name, fault.code, fault.message]));
    tell(errors);
    """
    said = node(script, path=zoo.resolve("zoo:digits-e4"))
    assert {name for name, _, _ in said} == {"EbnetError"}
    assert [code for _, code, _ in said] == [
        "FileMissing",
        "ArgumentInvalid",
        "ArgumentInvalid",
        "ArgumentInvalid",
        "ArgumentInvalid",
        "InputNotFinite",
        "ArgumentInvalid",
    ], said
    assert "10 values for 3 x 2 pixels" in said[1][2]


def test_networks_share_a_program_and_end_with_it() -> None:
    script = """
    const nets = await Promise.all(paths.map((path) => load(path)));
    const sizes = nets.map((net) => net.preprocessing.size);
    const answers = await Promise.all(nets.flatMap((net, i) => [0, 1].map(() =>
      net.predict({ data: new Uint8Array(sizes[i] ** 2), width: sizes[i], height: sizes[i] }))));
    tell(answers.map((answer) => answer.label));
    """  # the workers are not closed: the program must end all the same
    said = node(script, paths=[zoo.resolve("zoo:digits-e4"), zoo.resolve("zoo:fashion-mnist-e4")])
    assert said[0] == said[1]
    assert said[2] == said[3]


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_workers_share_a_batch(batch: int) -> None:
    engine = ebnet.load("zoo:digits-e4")
    pixels = np.random.default_rng(4).integers(0, 256, (batch, 28, 28, 1), dtype=np.uint8)
    script = """
    const net = await load(path, { threads: 3 });
    const ran = await net.run(new Uint8Array(Buffer.from(pixels, "base64")), { batch });
    const bad = await load(path, { threads: 0 }).catch((fault) => fault.message);
    tell({ logits: Array.from(ran.logits), experts: ran.experts, threads: net.threads, bad });
    """
    said = node(script, path=engine.path, pixels=encoded(pixels), batch=batch)
    expected = engine.run(pixels)
    np.testing.assert_allclose(np.reshape(said["logits"], expected.logits.shape), expected.logits, rtol=1e-5, atol=1e-4)
    assert np.array_equal(np.reshape(said["experts"], expected.experts.shape), expected.experts)
    assert said["threads"] == 3
    assert said["bad"] == "threads is 0; expected a whole number from 1 on"


def test_the_package_is_small_and_whole(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, ROOT / "web" / "build.py", "--package", tmp_path], check=False)
    assert done.returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "LICENSE",
        "README.md",
        "ebnet.d.ts",
        "ebnet.js",
        "package.json",
    ]
    assert sum(len(gzip.compress(path.read_bytes(), 9)) for path in tmp_path.iterdir()) <= 250_000
    package = json.loads((tmp_path / "package.json").read_text())
    assert (package["name"], package["version"]) == ("ebnet", ebnet.__version__)
    assert not package.keys() & {"dependencies", "peerDependencies", "optionalDependencies"}
    bundle = (STATIC / "ebnet.js").read_text()
    assert bundle.endswith("export { EbnetError, load };\n")
    for name in ("index.js", "engine.js", "worker.js", "core.js", "pixels.js", "errors.js"):
        assert (ROOT / "web" / "src" / name).is_file()
