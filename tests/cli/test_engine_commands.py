"""From a saved network to predictions, by commands alone."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from ebnet.cli.app import app
from ebnet.errors import CheckpointError, FormatError
from tests.packing.networks import random_network


def run(*words: object, code: int = 0, columns: int = 140) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": str(columns)})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """RUN/final with its preprocessing and labels, two images, and the packed file."""
    root = tmp_path_factory.mktemp("commands")
    model = random_network("1111-0.25-1:2:2:2", experts=2)
    final = model.save_pretrained(root / "run" / "final")
    preprocessing = {"size": 16, "resize": 18, "crop": 16, "mean": [0.5] * 3, "std": [0.25] * 3, "in_channels": 3}
    (final / "preprocessing.json").write_text(json.dumps(preprocessing))
    (final / "labels.json").write_text(json.dumps([f"thing {i}" for i in range(7)]))
    for name in ("a", "b"):
        pixels = np.random.default_rng(ord(name)).integers(0, 256, (20, 24, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(root / f"{name}.png")
    text = run("pack", root / "run", "-o", root / "net.ebn")
    assert "MB" in text
    return root


def test_pack_takes_a_model_directory_and_half_precision(folder: Path) -> None:
    run("pack", folder / "run" / "final", "-o", folder / "half.ebn", "--reals", "fp16")
    assert (folder / "half.ebn").stat().st_size < (folder / "net.ebn").stat().st_size
    assert json.loads(run("inspect", folder / "half.ebn", "--json"))["reals"] == "fp16"


def test_pack_says_what_it_wants(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"neither final/config\.json"):
        run("pack", tmp_path, "-o", tmp_path / "net.ebn")
    with pytest.raises(FormatError, match="this is not a packed network"):
        run("pack", folder / "a.png", "-o", tmp_path / "net.ebn")


def test_inspect(folder: Path) -> None:
    text = run("inspect", folder / "net.ebn", "--tensors")
    assert "1111-0.25-1:2:2:2" in text
    assert "3.0.0.gate.weight" in text
    with pytest.raises(FormatError, match=r"NotAPackedNetwork: this is not a packed network"):
        run("inspect", folder / "a.png")


def test_predict(folder: Path) -> None:
    assert "thing" in run("predict", folder / "net.ebn", folder / "a.png")
    rows = json.loads(run("predict", folder / "net.ebn", folder / "a.png", folder / "b.png", "--top", 2, "--json"))
    assert [len(row["labels"]) for row in rows] == [2, 2]
    assert rows[0]["image"].endswith("a.png")


def test_verify(folder: Path) -> None:
    found = json.loads(run("verify", folder / "net.ebn", "--against", folder / "run", "--images", 5, "--json"))
    assert found["passed"]
    assert found["images"] == 5
    assert found["unexplained"] == 0
    assert len(found["layers"]) == 11
    assert "passed" in run("verify", folder / "net.ebn", "--against", folder / "run", "--data", folder)


def test_verify_fails_against_another_network(folder: Path, tmp_path: Path) -> None:
    other = random_network("1111-0.25-1:2:2:2", experts=2, seed=9).save_pretrained(tmp_path)
    text = run("verify", folder / "net.ebn", "--against", other, "--images", 3, code=1)
    assert "FAILED" in text
    assert "0.0.0" in text


def test_bench(folder: Path) -> None:
    words = ("--seconds", 0.01, "--batch", 1, "--batch", 4, "--threads", 1, "--threads", 2)
    found = json.loads(run("bench", folder / "net.ebn", *words, "--json"))
    assert [(t["threads"], t["batch"]) for t in found["timings"]] == [(1, 1), (1, 4), (2, 1), (2, 4)]
    assert all(t["minimum"] <= t["median"] <= t["p90"] <= t["p99"] for t in found["timings"])
    assert sum(op["share"] for op in found["ops"]) == pytest.approx(1)
    assert "images/s" in run("bench", folder / "net.ebn", *words)


def test_export_onnx(folder: Path) -> None:
    assert "logits" in run("export-onnx", folder / "run", "-o", folder / "net.onnx")
    assert (folder / "net.onnx").stat().st_size > 1000


@pytest.mark.parametrize("command", [("bench", "--seconds", "0.01"), ("inspect", "--tensors")])
def test_tables_fit_80_columns_and_cut_no_name(folder: Path, command: tuple[str, ...]) -> None:
    told = run(command[0], folder / "net.ebn", *command[1:], columns=80)
    assert "…" not in told
    assert "3.0.0.shortcut.conv1" in told
    assert max(map(len, told.splitlines())) <= 80
