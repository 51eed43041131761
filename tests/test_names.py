"""A layer has one name, whoever speaks of it and however old the file is."""

import json
from pathlib import Path

import numpy as np
import pytest

import ebnet
from ebnet.cost import profile
from ebnet.names import layer_name, spoken, todays_name
from ebnet.packing.verify import verify
from ebnet.runs.metrics import read_metrics
from ebnet.runs.results import PhaseResult
from ebnet.runtime.bench import bench
from ebnet.runtime.inspect import inspect
from tests.packing.networks import random_network
from tests.tiny_run import TinyRun

EARLIER = [
    ("stages.2.1.units.0.conv", "2.1.0"),
    ("stages.2.1.0", "2.1.0"),
    ("stages.12.10.3.gate.weight", "12.10.3.gate.weight"),
    ("stages.2.1.0.shortcut.conv1", "2.1.0.shortcut.conv1"),
    ("stages.2.1.units.0.shortcut.conv2", "2.1.0.shortcut.conv2"),
]


@pytest.mark.parametrize(("written", "name"), EARLIER)
def test_names_of_earlier_files_are_todays(written: str, name: str) -> None:
    assert todays_name(written) == name
    assert todays_name(name) == name


@pytest.mark.parametrize("name", ["stem.conv1", "head", "classifier", "stages.", "stages.a.b.c", "mystages.1.1.1", ""])
def test_other_names_stay(name: str) -> None:
    assert todays_name(name) == name
    assert spoken(name) == name


def test_a_layer_is_called_the_same_everywhere(tmp_path: Path) -> None:
    model = random_network("1112-0.25-1:2:2:2", experts=2)
    file = ebnet.pack(model, tmp_path / "net.ebn")
    layers = list(model.binary_layers())
    units = [(0, 0, 2), (1, 0, 3), (2, 0, 3), (3, 0, 3), (3, 1, 3)]
    assert layers == [layer_name(stage, block, unit) for stage, block, count in units for unit in range(count)]
    engine, found = ebnet.load(file), inspect(file)
    images = np.random.default_rng(0).standard_normal((2, 3, 32, 32), dtype=np.float32)
    counted = {layer.name for layer in profile(model, 32).layers}
    measured = {op.name for op in bench(file, (1,), (1,), 32, 0.0).ops}
    told = {op["name"] for op in found.program if "name" in op}
    assert engine.layers == layers == [row.name for row in verify(engine, model, images).layers]
    assert set(layers) < told <= counted & measured
    assert any(name.endswith(".shortcut.conv1") for name in told)
    assert {f"{name}.bits" for name in layers} < {tensor.name for tensor in found.tensors}


def test_a_file_of_an_earlier_version_is_shown_by_todays_names() -> None:
    path = Path(ebnet.load("zoo:fashion-mnist-e4").path)
    assert b"stages.0.0.0" in path.read_bytes(), "the file was packed when layers had other names"
    found = inspect(path)
    assert "stages." not in json.dumps(found.to_dict())
    assert ebnet.load(path).layers[0] == "0.0.0"


def test_runs_of_an_earlier_version_are_read_by_todays_names(tiny_run: TinyRun, tmp_path: Path) -> None:
    state = json.loads((tiny_run.run / "stages" / "3-stage2" / "state.json").read_text())["position"]["result"]
    shares = list(state["usage"].values())
    earlier = {f"stages.{name[0]}.{name[2]}.units.{name[4]}.conv": share for name, share in state["usage"].items()}
    assert list(earlier) != list(state["usage"])
    assert PhaseResult.from_dict(state | {"usage": earlier}) == PhaseResult.from_dict(state)
    (tmp_path / "metrics.jsonl").write_text(json.dumps({"kind": "epoch", "usage": earlier}) + "\n")
    assert read_metrics(tmp_path / "metrics.jsonl")[0]["usage"] == dict(zip(state["usage"], shares, strict=True))
