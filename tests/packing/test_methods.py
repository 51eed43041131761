"""Every method with one-bit weights and activations: trained a little, folded, packed, run, and compared with torch."""

import copy
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch

import ebnet
from ebnet.errors import ConfigError
from ebnet.models.genotype import CellArch
from ebnet.models.methods import METHODS
from ebnet.models.network import ExpertBinaryNetwork
from ebnet.models.registry import network_config
from ebnet.nn.rprelu import RPReLU
from ebnet.packing.folding import FoldedUnit, fold, is_plain
from ebnet.packing.onnx import export_onnx
from ebnet.packing.unpack import unpack
from ebnet.packing.verify import verify

PACKED = [method.name for method in METHODS if method.one_bit]
SMALL = {"arch": "1211-0.25-1:1:1:1", "num_classes": 5, "stem": "cifar", "stem_width": 16, "shortcut": "none"}


def pictures(count: int, seed: int) -> torch.Tensor:
    return torch.randn(count, 3, 12, 8, generator=torch.Generator().manual_seed(seed))


def trained(name: str, **settings: object) -> ExpertBinaryNetwork:
    """The preset in small, after some steps: batch norms, thresholds, slopes and scales are not what they began as."""
    torch.manual_seed(7)
    preset = network_config(name)
    own: dict[str, object] = {"members": 2} if preset.members > 1 else {}
    own |= {"arch": "bnas-4x4"} if isinstance(preset.arch, CellArch) else {}
    model = ExpertBinaryNetwork(network_config(name, **(SMALL | own | settings)), "binary").train()
    for layer in model.modules():
        if isinstance(layer, RPReLU):
            torch.nn.init.normal_(layer.gamma, 0.0, 0.3)
            torch.nn.init.normal_(layer.zeta, 0.0, 0.3)
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], 1e-2)
    labels = torch.arange(16) % 5
    for step in range(4):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(pictures(16, step)), labels).backward()
        optimizer.step()
    return model.eval()


@pytest.mark.parametrize("experts", [1, 3])
@pytest.mark.parametrize("name", PACKED)
def test_folding_changes_nothing(name: str, experts: int) -> None:
    """In float64 the folded numbers compute what the unit computes, on the input that it has in the network."""
    model = trained(name, experts=experts).double()
    seen = {}
    units = {key: unit for key, unit in model.units() if not is_plain(unit)}
    for unit in units.values():
        unit.register_forward_hook(lambda made, inputs, output: seen.update({made: (inputs, output)}))
    model(pictures(4, 50).double())
    for key, unit in units.items():
        ops = fold(key, unit)
        inputs, expected = seen[unit]
        torch.testing.assert_close(FoldedUnit(unit, ops)(*inputs), expected, rtol=1e-9, atol=1e-9)
    assert bool(units) == (name not in ("bnn", "ccnn", "xnor-net-pp", "real-to-bin", "ebnet-1262"))


@pytest.mark.parametrize(("experts", "reals"), [(1, "fp32"), (3, "fp16")])
@pytest.mark.parametrize("name", PACKED)
def test_the_engine_computes_what_torch_computes(name: str, experts: int, reals: str, tmp_path: Path) -> None:
    model = trained(name, experts=experts)
    engine = ebnet.load(ebnet.pack(model, tmp_path / "net.ebn", reals=reals))  # type: ignore[arg-type]
    images = pictures(12, 60).numpy()
    result = verify(engine, model, images)
    assert result.passed, result.to_dict()
    assert result.within_tolerance >= 6
    if reals == "fp32":
        # And without the folding between, the network as it was trained; but for a sign that rounding may turn.
        with torch.no_grad():
            logits = model(torch.from_numpy(images)).numpy()
        close = np.abs(engine(images) - logits).max(1) <= 1e-3 * np.abs(logits).max(1)
        assert close.mean() >= 0.5


@pytest.mark.parametrize(
    ("name", "experts"), [(method.name, 1) for method in METHODS] + [("ttq", 3), ("xnor-net", 3), ("reactnet-18", 3)]
)
def test_onnx_computes_what_torch_computes(name: str, experts: int, tmp_path: Path) -> None:
    model = trained(name, experts=experts)
    path = export_onnx(model, tmp_path / "net.onnx")
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    images = pictures(12, 70)
    (logits,) = session.run(None, {"images": images.numpy()})
    with torch.no_grad():
        expected = model(images).numpy()
    close = np.abs(logits - expected).max(1) <= 1e-3 * np.abs(expected).max(1)
    assert close.mean() >= 0.5
    assert np.median(np.abs(logits - expected)) <= 1e-3 * np.abs(expected).max()


def test_weights_of_two_bits_beside_signs(tmp_path: Path) -> None:
    """No row has it, a user may: each kind of activation beside weights that are no signs."""
    for activations in ("sign", "rsign", "abc-5"):
        model = trained("bi-real", weights="ttq", activations=activations)
        session = onnxruntime.InferenceSession(export_onnx(model, tmp_path / f"{activations}.onnx"))
        images = pictures(8, 71)
        (logits,) = session.run(None, {"images": images.numpy()})
        expected = model(images).detach().numpy()
        assert (np.abs(logits - expected).max(1) <= 1e-3 * np.abs(expected).max(1)).mean() >= 0.5


def test_a_file_of_another_network_is_told(tmp_path: Path) -> None:
    model = trained("reactnet-18")
    engine = ebnet.load(ebnet.pack(model, tmp_path / "net.ebn"))
    other = copy.deepcopy(model)
    name, unit = next(other.units())
    with torch.no_grad():
        unit.act.zeta.add_(1.0)  # type: ignore[operator, union-attr]
    result = verify(engine, other, pictures(2, 1).numpy())
    assert not result.passed
    assert result.tensors_differ == [f"{name}.after"]


def test_versions_are_the_least_that_serve(tmp_path: Path) -> None:
    from safetensors import safe_open

    versions = {"bnn": "1", "xnor-net": "1", "abc-net-5": "1", "benn": "1", "bi-real": "3", "reactnet-18": "3"}
    versions |= {"cbcn": "3", "group-net": "4", "bnas-f": "4"}
    for name, version in versions.items():
        path = ebnet.pack(trained(name), tmp_path / f"{name}.ebn")
        with safe_open(path, "numpy") as file:
            assert file.metadata()["version"] == version, name


@pytest.mark.parametrize("name", ["real-to-bin", "reactnet-18", "abc-net-1"])
def test_structures_combine(name: str, tmp_path: Path) -> None:
    """Turned filters in branches of members with experts, under another paper's quantizers."""
    model = trained(name, arch="1111-0.125-1:1:1:1", orientations=4, branches=2, members=2, experts=2)
    assert len(model.binary_layers()) == 8 * 2 * 2
    engine = ebnet.load(ebnet.pack(model, tmp_path / "net.ebn"))
    assert verify(engine, model, pictures(4, 61).numpy()).passed


def test_folded_numbers_are_not_taken_for_a_networks_own(tmp_path: Path) -> None:
    for name in ("bi-real", "xnor-net"):
        with pytest.raises(ConfigError, match=r"whose numbers are folded into few; the run has the network"):
            unpack(ebnet.pack(trained(name), tmp_path / "net.ebn"))


def test_several_bases_are_several_ops(tmp_path: Path) -> None:
    model = trained("abc-net-5")
    engine = ebnet.load(ebnet.pack(model, tmp_path / "net.ebn"))
    binary = [op for op in engine.program if op["op"] == "binary"]
    assert len(binary) == 25 * len(model.binary_layers())


def test_int8_layers_beside_other_units(tmp_path: Path) -> None:
    calibrate = pictures(16, 3).numpy()
    for name in ("bi-real", "group-net"):
        model = trained(name)
        engine = ebnet.load(ebnet.pack(model, tmp_path / f"{name}.ebn", reals="int8", calibrate=calibrate))
        assert verify(engine, model, pictures(6, 4).numpy()).passed
