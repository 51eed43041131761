"""A packed file as a torch network again."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

import ebnet
from ebnet.errors import CheckpointError, ConfigError
from ebnet.packing.source import open_packable
from tests.packing.networks import random_network

NETWORKS = [
    {"arch": "1111-0.25-1:1:1:1"},
    {"arch": "1121-0.25-1:2:2:4", "experts": 4, "scaling": True},
    {"arch": "1111-0.5-1:1:1:2", "experts": 3, "stem": "cifar", "shortcut": "none", "head_width": 24},
]


@pytest.mark.parametrize("settings", NETWORKS)
@pytest.mark.parametrize("reals", ["fp32", "fp16"])
def test_it_computes_what_the_file_does(tmp_path: Path, settings: dict, reals: str) -> None:
    model = random_network(**settings)
    path = ebnet.pack(model, tmp_path / "net.ebn", reals=reals)
    network = ebnet.unpack(path)
    assert network.config == model.config
    for name, layer in network.binary_layers().items():
        own = model.binary_layers()[name].weight
        assert torch.equal(layer.weight >= 0, own >= 0)
        assert torch.allclose(layer.weight.abs(), torch.tensor(0.5 / own[0].numel() ** 0.5))
    images = torch.randn(4, 3, 40, 40, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        logits = network.double()(images.double())
    torch.testing.assert_close(torch.from_numpy(ebnet.load(path)(images.numpy())), logits.float(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("reals", ["fp32", "fp16"])
def test_packed_again_it_is_the_same_file_but_for_the_norms_last_bits(tmp_path: Path, reals: str) -> None:
    first = load_file(ebnet.pack(random_network(**NETWORKS[1]), tmp_path / "net.ebn", reals=reals))
    again = load_file(ebnet.pack(ebnet.unpack(tmp_path / "net.ebn"), tmp_path / "again.ebn", reals=reals))
    assert set(first) == set(again)
    for name, array in first.items():
        if name.endswith(".norm"):
            np.testing.assert_allclose(again[name], array, rtol=1e-3 if reals == "fp16" else 1e-6, atol=1e-6)
        else:
            np.testing.assert_array_equal(again[name], array)


@pytest.mark.parametrize("name", ["digits-e4", "fashion-mnist-e4", "imagenette-e4"])
def test_the_zoo_with_its_preprocessing_and_labels(name: str) -> None:
    """Files of earlier versions too, whose layers have other names."""
    source, engine = open_packable(f"zoo:{name}"), ebnet.load(f"zoo:{name}")
    assert source.labels == engine.labels
    seen = engine.preprocessing
    assert source.preprocessing is not None
    assert source.preprocessing["mean"] == seen.mean
    images = np.random.default_rng(0).integers(0, 256, (8, seen.size, seen.size, seen.in_channels), np.uint8)
    mean, std = (torch.tensor(values)[:, None, None] for values in (seen.mean, seen.std))
    with torch.no_grad():
        logits = source.model((torch.from_numpy(images).permute(0, 3, 1, 2) / 255 - mean) / std)
    torch.testing.assert_close(torch.from_numpy(engine(images)), logits, rtol=1e-4, atol=1e-4)


def test_int8_layers_are_refused(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (8, 40, 40, 3), np.uint8)
    path = ebnet.pack(random_network(**NETWORKS[0]), tmp_path / "net.ebn", reals="int8", calibrate=images)
    with pytest.raises(ConfigError, match=r"net\.ebn has int8 layers; their real weights are in the file of fp16"):
        ebnet.unpack(path)


def test_settings_that_are_not_the_programs_are_refused(tmp_path: Path) -> None:
    """The engine does not read them, so a file may say anything there."""
    path = ebnet.pack(random_network(**NETWORKS[0]), tmp_path / "net.ebn")
    with safe_open(path, "numpy") as file:
        metadata = file.metadata()
    metadata["network"] = json.dumps(json.loads(metadata["network"]) | {"arch": "1121-0.25-1:1:1:1"})
    save_file(load_file(path), path, metadata)
    with pytest.raises(ConfigError, match="packed from another network"):
        ebnet.unpack(path)


def test_what_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"nothing does not exist; give a run directory, .* or zoo:NAME"):
        open_packable(tmp_path / "nothing")
