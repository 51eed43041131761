"""The ONNX export, run by ONNX Runtime against torch."""

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch

from ebnet.errors import ConfigError
from ebnet.packing.onnx import export_onnx, onnx_model
from tests.packing.networks import random_network


@pytest.mark.parametrize(
    ("arch", "settings"),
    [
        ("1111-0.25-1:2:2:2", {"experts": 4, "scaling": True, "head_width": 9}),
        ("1111-0.25-2:2:2:2", {"stem": "imagenet", "experts": 3}),
        ("1111-0.25-1:1:1:1", {"stem": "conv7x7", "shortcut": "none"}),
        ("1111-0.25-1:1:1:1", {"shortcut": "relu", "in_channels": 1}),
    ],
)
def test_onnx_runtime_equals_torch(arch: str, settings: dict[str, Any], tmp_path: Path) -> None:
    model = random_network(arch, **settings)
    path = export_onnx(model, tmp_path / "net.onnx")
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for batch, height, width in ((1, 16, 16), (3, 19, 13)):
        images = np.random.default_rng(batch).standard_normal((batch, model.config.in_channels, height, width))
        images = images.astype(np.float32)
        (logits,) = session.run(None, {"images": images})
        with torch.no_grad():
            expected = model(torch.from_numpy(images)).numpy()
        np.testing.assert_allclose(logits, expected, atol=1e-3 * np.abs(expected).max())


def test_sign_and_choice_are_what_the_docs_say() -> None:
    kinds = {node.op_type for node in onnx_model(random_network("1111-0.25-1:1:1:1", experts=2)).graph.node}
    assert {"GreaterOrEqual", "Where", "ArgMax", "GatherND"} <= kinds
    assert "Sign" not in kinds


def test_a_stage_one_network_is_refused(tmp_path: Path) -> None:
    model = random_network("1111-0.25-1:1:1:1", precision="binary_input")
    with pytest.raises(ConfigError, match="Stage II"):
        export_onnx(model, tmp_path / "net.onnx")
