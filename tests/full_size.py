"""The paper's network at its full size, for machines other than this one: they must say what the engine says here."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import torch

import ebnet
from ebnet.runtime.results import Run

SIDE = 224


def pack_full_size(path: Path, reals: Literal["fp32", "int8"] = "fp32") -> tuple[np.ndarray, Run]:
    """1262-2-4:8:8:16 with 4 experts, packed; pixels, and what the native engine says of them."""
    torch.manual_seed(0)
    model = ebnet.create_model("1262-2-4:8:8:16", experts=4, precision="binary").eval()
    images = torch.randn(2, 3, SIDE, SIDE).numpy()
    ebnet.pack(model, path, reals, calibrate=images if reals == "int8" else None)
    pixels = np.random.default_rng(0).integers(0, 256, (1, SIDE, SIDE, 3), dtype=np.uint8)
    return pixels, ebnet.load(path).run(pixels)


def assert_same(logits: np.ndarray, experts: list[int], expected: Run) -> None:
    np.testing.assert_allclose(logits, expected.logits[0], rtol=1e-5, atol=1e-5 * np.abs(expected.logits).max())
    assert experts == expected.experts[:, 0].tolist()
    assert int(np.argmax(logits)) == int(expected.logits[0].argmax())
