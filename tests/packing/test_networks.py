"""Whole networks: the engine gives the torch model's logits and experts, over a spread of what can be named."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import ebnet
from ebnet._native import kernels
from ebnet.packing.verify import verify
from tests.models.official_reference import forward, random_state
from tests.native.binary_case import narrowed, widened
from tests.packing.networks import random_network

NETWORKS: dict[str, tuple[str, dict[str, Any]]] = {
    "one expert": ("1111-0.25-1:1:1:1", {}),
    "experts and groups": ("1221-0.25-1:2:2:4", {"experts": 4}),
    "experts, groups, scaling": ("1111-0.5-4:4:8:8", {"experts": 4, "scaling": True}),
    "no aggregation": ("1121-0.25-2:2:4:8", {"experts": 2, "aggregation": False}),
    "imagenet stem": ("1111-0.25-2:2:2:2", {"experts": 4, "stem": "imagenet"}),
    "7x7 stem": ("1111-0.25-2:2:2:2", {"experts": 3, "stem": "conv7x7"}),
    "shortcut none": ("1111-0.25-1:1:1:1", {"shortcut": "none"}),
    "shortcut linear": ("1111-0.25-1:1:1:1", {"shortcut": "linear"}),
    "shortcut relu": ("1111-0.25-1:1:1:1", {"shortcut": "relu", "shortcut_reduction": 3}),
    "head": ("1111-0.25-1:1:1:1", {"head_width": 11, "experts": 2}),
    "odd widths": ("1111-0.328125:0.6875:0.375:0.25-1:1:1:1", {"experts": 4, "scaling": True}),
    "width per stage": ("1111-0.5:0.25:0.25:0.125-4:2:2:1", {"experts": 4}),
    "grey pictures": ("1111-0.25-1:1:1:1", {"in_channels": 1, "num_classes": 2}),
    "wide": ("1111-2-4:8:8:16", {"experts": 4, "num_classes": 10}),
}
SHAPES = [(1, 16, 16), (3, 19, 13), (5, 17, 32)]


def cpu_runs(isa: str) -> bool:
    return any(name.startswith(isa) and runs for name, runs in kernels.names())


def pictures(batch: int, channels: int, height: int, width: int) -> np.ndarray:
    return np.random.default_rng(batch).standard_normal((batch, channels, height, width), dtype=np.float32)


@pytest.mark.parametrize("name", NETWORKS)
def test_engine_equals_torch(name: str, tmp_path: Path) -> None:
    arch, settings = NETWORKS[name]
    model = random_network(arch, **settings)
    path = ebnet.pack(model, tmp_path / "net.ebn")
    for threads, (batch, height, width) in zip((1, 2, 1), SHAPES, strict=True):
        engine = ebnet.load(path, threads=threads)
        images = pictures(batch, model.config.in_channels, height, width)
        found = verify(engine, model, images)
        near = sum(layer.near_zero for layer in found.layers)
        print(f"{name}, batch {batch}: {near} pre-sign values near 0, {found.explained} images explained by one")
        assert found.unexplained == 0, found
        assert found.within_tolerance + found.explained == batch
        if found.explained == 0:
            assert found.experts_agreement == 1
            assert found.max_relative < 1e-3


def test_verify_finds_a_difference(tmp_path: Path) -> None:
    """The comparison itself can fail: another network's numbers are reported as unexplained."""
    engine = ebnet.load(ebnet.pack(random_network("1111-0.25-1:1:1:1", experts=4), tmp_path / "net.ebn"))
    found = verify(engine, random_network("1111-0.25-1:1:1:1", experts=4, seed=1), pictures(3, 3, 16, 16))
    assert found.unexplained == 3
    assert found.first_difference == "0.0.0"


@pytest.mark.parametrize("isa", ["reference", "portable", "avx2", "avx512", "amx"])
def test_every_instruction_set(isa: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """EBNET_ISA forces the kernels, proven by their names; all give the same bits, so the same experts."""
    model = random_network("1111-0.5-1:2:4:4", experts=4, scaling=True)
    path = ebnet.pack(model, tmp_path / "net.ebn")
    monkeypatch.setenv("EBNET_ISA", isa)
    if not cpu_runs(isa):
        with pytest.raises(ebnet.errors.ConfigError, match=f"EBNET_ISA={isa} cannot run here") as refused:
            ebnet.load(path)
        pytest.skip(str(refused.value))
    engine = ebnet.load(path)
    assert engine.isa == isa
    assert all(name.startswith((isa, "portable", *(["avx512"] if isa == "amx" else []))) for name in engine.kernels)
    assert any(name.startswith(isa) for name in engine.kernels)
    assert verify(engine, model, pictures(3, 3, 15, 18)).unexplained == 0


@pytest.mark.parametrize("stream", ["fp16", "bf16"])
def test_a_narrow_stream(stream: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What binary units hand to each other is rounded; what real-valued ops read or make is not."""
    model = random_network("1121-0.5-1:2:4:4", experts=4, scaling=True)
    path = ebnet.pack(model, tmp_path / "net.ebn")
    images = pictures(5, 3, 19, 24)
    exact, narrow = ebnet.load(path).trace(images), ebnet.load(path, threads=2, stream=stream).trace(images)
    ops = ebnet.load(path).program
    readers: dict[int, set[str]] = {}
    for op in ops:
        for value in [*op["in"], *([op["skip"]] if "skip" in op else [])]:
            readers.setdefault(value, set()).add(op["op"])
    first = None
    for index, op in enumerate(ops):
        value = narrow.values[index]
        rounded = widened(narrowed(value, stream), stream)
        if op["op"] == "binary" and readers[index + 1] == {"binary"}:
            np.testing.assert_array_equal(value, rounded, err_msg=str(op))
            first = index if first is None else first
        elif op["op"] in ("binary", "conv"):
            assert not np.array_equal(value, rounded), op
    assert first is not None
    np.testing.assert_array_equal(narrow.values[first], widened(narrowed(exact.values[first], stream), stream))
    assert not np.array_equal(exact.logits, narrow.logits)
    assert np.corrcoef(exact.logits.ravel(), narrow.logits.ravel())[0, 1] > 0.95
    monkeypatch.setenv("EBNET_ISA", "reference")
    plain = ebnet.load(path, stream=stream).trace(images)
    np.testing.assert_array_equal(plain.experts, narrow.experts)
    np.testing.assert_allclose(plain.logits, narrow.logits, rtol=1e-4, atol=1e-4)


def test_an_unknown_stream_is_refused(tmp_path: Path) -> None:
    path = ebnet.pack(random_network("1111-0.25-1:1:1:1"), tmp_path / "net.ebn")
    with pytest.raises(ebnet.errors.ConfigError, match="stream='fp8': expected one of fp32, fp16, bf16"):
        ebnet.load(path, stream="fp8")


def test_an_unknown_instruction_set_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = ebnet.pack(random_network("1111-0.25-1:1:1:1"), tmp_path / "net.ebn")
    monkeypatch.setenv("EBNET_ISA", "abacus")
    with pytest.raises(ebnet.errors.ConfigError, match="EBNET_ISA=abacus"):
        ebnet.load(path)


def test_the_released_checkpoint_packs(tmp_path: Path) -> None:
    state = random_state([1, 2, 2, 1], 0.25, [1, 2, 2, 4], experts=4, classes=10, seed=3)
    images = torch.randn(4, 3, 64, 64, generator=torch.Generator().manual_seed(5))
    logits, experts = forward(state, images)
    engine = ebnet.load(ebnet.pack(ebnet.import_official(state), tmp_path / "net.ebn"))
    np.testing.assert_allclose(engine(images), logits, atol=1e-3)
    np.testing.assert_array_equal(engine.experts(images), experts)


def test_half_precision_reals_stay_close(tmp_path: Path) -> None:
    model = random_network("1111-0.5-1:2:2:4", experts=4)
    images = pictures(8, 3, 24, 24)
    whole = ebnet.load(ebnet.pack(model, tmp_path / "whole.ebn"))(images)
    half = ebnet.load(ebnet.pack(model, tmp_path / "half.ebn", reals="fp16"))(images)
    assert not np.array_equal(whole, half)
    assert np.corrcoef(whole.ravel(), half.ravel())[0, 1] > 0.98


def test_half_precision_is_exact_where_the_numbers_are_halves(tmp_path: Path) -> None:
    """With the model's own numbers rounded to halves, the half file differs from torch only by the folded norms."""
    model = random_network("1111-0.25-1:1:1:1", experts=2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.half().float())
        for module in model.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.running_mean.zero_()
                module.running_var.fill_(1.0)
                module.eps = 0.0
    engine = ebnet.load(ebnet.pack(model, tmp_path / "half.ebn", reals="fp16"))
    assert verify(engine, model, pictures(3, 3, 16, 16)).unexplained == 0
