"""Writing packed files: sizes, refusals, and that a file appears whole or not at all."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

import ebnet
from ebnet.cost.profile import profile
from ebnet.errors import ConfigError, NonFiniteError
from ebnet.packing.file import packed_bytes
from ebnet.packing.program import packed_signs
from ebnet.runtime.inspect import inspect
from tests.packing.networks import random_network


@pytest.mark.parametrize("reals", ["fp32", "fp16"])
def test_size_is_what_the_cost_says(reals: str) -> None:
    """The paper's network with 4 experts: within 2 % of the count, and 7.8 MB in half precision."""
    model = ebnet.create_model("1262-2-4:8:8:16", experts=4, precision="binary")
    counted = profile(model.config)
    size = len(packed_bytes(model, reals))
    assert abs(size / (counted.bytes_fp16 if reals == "fp16" else counted.bytes_fp32) - 1) < 0.02
    if reals == "fp16":
        assert size <= 7_800_000


def test_bits_are_in_the_documented_order() -> None:
    """Per channel ky, kx, in; least significant bit first; sign(0) = +1."""
    first_column, second_column = [1.0, -1.0, -1.0, 1.0, 0.0], [-1.0, 1.0, 1.0, -1.0, 1.0]
    weights = torch.tensor([first_column, second_column]).T.reshape(1, 1, 5, 1, 2)
    np.testing.assert_array_equal(packed_signs(weights), [[[0b11011001, 0b10]]])


def test_a_stage_one_network_is_refused(tmp_path: Path) -> None:
    model = ebnet.create_model("1111-0.25-1:1:1:1", precision="binary_input")
    with pytest.raises(ConfigError, match=r"layer 0\.0\.0 has precision 'binary_input'.*Stage II"):
        ebnet.pack(model, tmp_path / "net.ebn")
    assert not list(tmp_path.iterdir())


def test_one_real_layer_is_refused(tmp_path: Path) -> None:
    model = random_network("1111-0.25-1:1:1:1")
    layer = next(reversed(model.binary_layers().values()))
    layer.precision = ebnet.nn.Precision.REAL
    with pytest.raises(ConfigError, match=r"layer 3\.0\.1 has precision 'real'"):
        ebnet.pack(model, tmp_path / "net.ebn")


def test_cond_conv_is_refused(tmp_path: Path) -> None:
    model = ebnet.create_model("1111-0.25-1:1:1:1", experts=2, conv="cond", precision="binary")
    with pytest.raises(ConfigError, match="conv='cond'"):
        ebnet.pack(model, tmp_path / "net.ebn")


def test_another_object_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not Linear"):
        ebnet.pack(torch.nn.Linear(1, 1), tmp_path / "net.ebn")


def test_a_number_too_large_for_half_precision_is_an_error(tmp_path: Path) -> None:
    model = random_network("1111-0.25-1:1:1:1")
    with torch.no_grad():
        model.classifier.weight[0, 0] = 1e5
    with pytest.raises(NonFiniteError, match=r"classifier.weight holds 100000, too large for fp16; use reals='fp32'"):
        ebnet.pack(model, tmp_path / "net.ebn", reals="fp16")
    assert not (tmp_path / "net.ebn").exists()
    ebnet.load(ebnet.pack(model, tmp_path / "net.ebn"))


def test_damaged_numbers_are_an_error(tmp_path: Path) -> None:
    model = random_network("1111-0.25-1:1:1:1")
    with torch.no_grad():
        model.classifier.bias[0] = float("nan")
    with pytest.raises(NonFiniteError, match=r"classifier\.bias"):
        ebnet.pack(model, tmp_path / "net.ebn")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"reals": "fp8"}, "reals='fp8'"),
        ({"labels": ["a"]}, "1 labels for 7 classes"),
        ({"preprocessing": {"colour": 1}}, "unknown preprocessing colour"),
        ({"preprocessing": {"mean": [0.5]}}, "3 input channels"),
        ({"preprocessing": {"std": [0.0, 1.0, 1.0]}}, "positive"),
        ({"preprocessing": {"size": 8, "resize": 4}}, "resize is not below crop"),
    ],
)
def test_wrong_settings(wrong: dict, words: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=words):
        ebnet.pack(random_network("1111-0.25-1:1:1:1"), tmp_path / "net.ebn", **wrong)


def test_inspect_shows_what_was_packed(tmp_path: Path) -> None:
    model = random_network("1111-0.25-1:1:1:1", experts=2)
    given = {"size": 24, "resize": 28, "crop": 24, "mean": [0.1, 0.2, 0.3], "std": [0.5, 0.6, 0.7]}
    path = ebnet.pack(model, tmp_path / "net.ebn", "fp16", given, [f"näme {i}" for i in range(7)])
    found = inspect(path)
    assert found.reals == "fp16"
    assert found.file_bytes == path.stat().st_size == found.header_bytes + found.bit_bytes + found.real_bytes
    assert found.labels[6] == "näme 6"
    assert found.preprocessing == given | {"in_channels": 3}
    assert found.network == model.config.to_dict()
    assert [op["op"] for op in found.program][-2:] == ["global_pool", "linear"]


KILLED = """
import os, sys, ebnet
from tests.packing.networks import random_network
model = random_network("1111-1-1:1:1:1", experts=4)
real = os.fsync
def slow(descriptor):
    print("writing", flush=True)
    import time
    time.sleep(60)
os.fsync = slow
ebnet.pack(model, sys.argv[1])
"""


def test_a_kill_in_the_middle_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "net.ebn"
    path.write_bytes(b"old")
    root = Path(__file__).parents[2]
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(path)], cwd=root, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"
    time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert path.read_bytes() == b"old"


def test_a_folder_that_does_not_exist_is_not_made(tmp_path: Path) -> None:
    model = random_network("1111-0.125-1:1:1:1")
    with pytest.raises(ConfigError, match=r"the folder .*typo does not exist; make it first"):
        ebnet.pack(model, tmp_path / "typo" / "net.ebn")
    assert not (tmp_path / "typo").exists()
