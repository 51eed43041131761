"""Arrays of the wrong size never reach a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ebnet._native import kernels

F, U = np.float32, np.uint64


def zeros(*shape: int, dtype: Any = F) -> np.ndarray:
    return np.zeros(shape, dtype)


BINARIZE: dict[str, Any] = {
    "input": zeros(3, 8),
    "per_group": 4,
    "bn_scale": zeros(8),
    "bn_shift": zeros(8),
    "bits": zeros(6, dtype=U),
    "sums": zeros(8),
}
POOL: dict[str, Any] = {
    "level": "scalar",
    "kind": "max",
    "kernel": 2,
    "stride": 2,
    "pad": 0,
    "ceil_mode": False,
    "input": zeros(4, 4, 3),
    "output": zeros(2, 2, 3),
}
CONV: dict[str, Any] = {
    "level": "scalar",
    "shape": [2, 5, 1, 3, 3, 1, 1, 1, 1, 1, 1, 4, 4],
    "weights": zeros(5, 2, 3, 3),
    "scale": zeros(5),
    "shift": zeros(5),
    "activation": "prelu",
    "slope": zeros(5),
    "input": zeros(4, 4, 2),
    "output": zeros(4, 4, 5),
    "split": 1,
}
LINEAR: dict[str, Any] = {
    "level": "scalar",
    "weights": zeros(4, 3),
    "bias": None,
    "activation": "none",
    "slope": None,
    "input": zeros(3),
    "output": zeros(4),
}
WRONG: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("binarize", BINARIZE, {"sums": zeros(2)}),
    ("binarize", BINARIZE, {"bn_scale": zeros(1)}),
    ("binarize", BINARIZE, {"bn_shift": zeros(7)}),
    ("binarize", BINARIZE, {"bits": zeros(5, dtype=U)}),
    ("binarize", BINARIZE, {"per_group": 3}),
    ("pool", POOL, {"output": zeros(2, 2, 1)}),
    ("pool", POOL, {"output": zeros(1, 2, 3)}),
    ("pool", POOL, {"kernel": 0}),
    ("pool", POOL, {"kernel": 5}),
    ("pool", POOL, {"stride": 0}),
    ("pool", POOL, {"pad": -1}),
    ("pool", POOL, {"pad": 2}),
    ("pool", POOL, {"kind": "least"}),
    ("pool", POOL, {"input": zeros(0, 4, 3)}),
    ("dense_conv", CONV, {"split": 5}),
    ("dense_conv", CONV, {"split": -1}),
    ("dense_conv", CONV, {"output": zeros(4, 4, 4)}),
    ("dense_conv", CONV, {"output": zeros(81)}),
    ("dense_conv", CONV, {"input": zeros(33)}),
    ("dense_conv", CONV, {"slope": None}),
    ("dense_conv", CONV, {"scale": zeros(4)}),
    ("linear", LINEAR, {"activation": "prelu"}),
    ("linear", LINEAR, {"bias": zeros(3)}),
    ("linear", LINEAR, {"input": zeros(2)}),
    ("global_average_pool", {"level": "scalar", "input": zeros(2, 3), "output": zeros(3)}, {"input": zeros(0, 3)}),
    ("global_average_pool", {"level": "scalar", "input": zeros(2, 3), "output": zeros(3)}, {"output": zeros(2)}),
]


@pytest.mark.parametrize(
    ("name", "good", "wrong"), WRONG, ids=[f"{name}-{next(iter(wrong))}" for name, _, wrong in WRONG]
)
def test_wrong_arrays_are_refused(name: str, good: dict[str, Any], wrong: dict[str, Any]) -> None:
    function = getattr(kernels, name)
    function(**good)
    with pytest.raises(ValueError, match=r"\w"):
        function(**(good | wrong))
