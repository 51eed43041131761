"""A sum's float error is that of its parts: a sign that parts cancelling each other turned is explained."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import ebnet
from ebnet.models.registry import create_model
from ebnet.packing.float_error import Sizes
from ebnet.packing.verify import NEAR_ZERO, _Seen, _signs, verify
from ebnet.runtime.results import Trace

SKIP = {"op": "binary", "out": 1, "kernel": 3, "pad": 1}


def sizes_of(ops: list[dict[str, Any]], values: list[float], layers: Any = ()) -> Sizes:
    """Of a network of one pixel and channel, whose ops made these values of an image that is 2."""
    maps = [np.full((1, 1, 1, 1), value, np.float32) for value in values]
    trace = Trace(np.zeros((1, 1), np.float32), np.zeros((0, 1), np.int64), maps)
    return Sizes(ops, dict(layers), trace, np.full((1, 1, 1, 1), 2.0, np.float32))


def test_sizes_add_up_along_the_skips() -> None:
    chain = [SKIP | {"in": [0]}, SKIP | {"in": [1], "skip": 1}, SKIP | {"in": [2], "skip": 2}]
    sizes = sizes_of(chain, [1.5, -1.0, 0.25])
    assert [sizes.of(index).item() for index in range(4)] == [2.0, 1.5, 1.5 + 2.5, 1.5 + 2.5 + 1.25]


def test_a_sum_has_the_sizes_of_its_parts() -> None:
    ops = [SKIP | {"in": [0]}, SKIP | {"in": [1], "skip": 1}, {"op": "sum", "in": [1, 2], "factors": [0.5, -2.0]}]
    assert sizes_of(ops, [1.0, 0.25, 0.0]).of(3).item() == 0.5 * 1.0 + 2.0 * 1.75


def test_what_is_joined_keeps_the_sizes_of_its_parts() -> None:
    ops = [SKIP | {"in": [0]}, SKIP | {"in": [1], "skip": 1}, {"op": "concat", "in": [2, 1]}]
    assert sizes_of(ops, [1.0, 0.25, 0.0]).of(3).reshape(-1).tolist() == [1.75, 1.0]


def test_a_real_layer_has_the_size_of_its_products() -> None:
    conv = {"op": "conv", "in": [0], "name": "stem.conv", "out": 1, "kernel": 1}
    layer = np.full((1, 1, 1, 1), -3.0), np.array([[-0.5], [3.0]])
    assert sizes_of([conv], [0.0], {0: layer}).of(1).item() == 2 * 3 * 0.5 + 3
    assert sizes_of([conv], [0.0]).of(1).item() == 0  # int8, which adds whole numbers


def test_a_sign_that_cancelling_turned_is_explained() -> None:
    """The numbers of a network that came out so: 0.108 - 0.108 is 0 in one order of adding, -7.45e-9 in another."""
    conv = {"op": "conv", "in": [0], "out": 1, "kernel": 1}
    ops = [conv, SKIP | {"in": [0], "skip": 1}, SKIP | {"in": [2], "skip": 2}]
    sizes = sizes_of(ops, [0.023837486, 0.10810685, 0.0])
    before = np.full((1, 1, 1, 1), -7.450208e-09, np.float32)
    unit = _Seen(np.array([[0.99995], [0.0]]), before, None, np.zeros(1, np.int64), None)
    near, flipped = _signs(sizes, 3, unit, NEAR_ZERO["fp32"])
    assert flipped.all()
    assert near.all()
    far = _Seen(unit.norm, np.full_like(before, -7e-6), None, unit.experts, None)
    near, flipped = _signs(sizes, 3, far, NEAR_ZERO["fp32"])
    assert flipped.all()
    assert not near.any()


def test_zeros_of_a_relu_are_not_near_misses(tmp_path: Path) -> None:
    """A third of the first unit's input and more; without training their batch norm shifts nothing."""
    torch.manual_seed(0)
    model = create_model("1111-0.25-1:1:1:1", experts=2, num_classes=3, precision="binary", stem="cifar")
    images = torch.randn(2, 3, 16, 16)
    stem: nn.Module = model.stem  # type: ignore[assignment]
    assert (stem(images) == 0).sum() > 1000
    found = verify(ebnet.load(ebnet.pack(model, tmp_path / "net.ebn")), model, images.numpy())
    assert found.passed
    assert sum(row.near_zero for row in found.layers) < 20
