import json
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.parallel import DistributedDataParallel

import ebnet
from ebnet.errors import CheckpointError, ConfigError, NonFiniteError, ShapeError
from ebnet.models.config import NetworkConfig
from ebnet.models.registry import NAMED
from ebnet.nn import Precision

SMALL = "1121-0.125-1:1:2:2"

configs = st.fixed_dictionaries(
    {
        "arch": st.sampled_from([SMALL, "1111-0.25-2:2:2:2", "2111-0.125:0.25:0.125:0.125-1:2:4:1", "1111-1-1:1:1:1"]),
        "experts": st.integers(1, 3),
        "num_classes": st.integers(1, 7),
        "in_channels": st.sampled_from([1, 3]),
        "stem": st.sampled_from(["imagenet", "conv7x7", "cifar"]),
        "shortcut": st.sampled_from(["none", "linear", "relu", "prelu"]),
        "aggregation": st.booleans(),
        "scaling": st.booleans(),
        "head_width": st.sampled_from([None, 5]),
        "conv": st.sampled_from(["expert", "cond"]),
    }
)


@settings(max_examples=40)
@given(configs, st.sampled_from(list(Precision)), st.integers(9, 40), st.integers(1, 3))
def test_every_network_trains_a_step(config: dict, precision: Precision, size: int, batch: int) -> None:
    model = ebnet.create_model(precision=precision, **config)
    images = torch.randn(batch + 1, config["in_channels"], size, size + 3)
    logits, maps = model(images, features="block")
    assert logits.shape == (batch + 1, config["num_classes"])
    assert len(maps) == sum(model.config.arch.blocks)
    logits.square().sum().backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in model.parameters())


def test_feature_maps_for_distillation() -> None:
    model = ebnet.create_model("1221-0.25-1:2:2:4", num_classes=10, stem="cifar")
    _, stages = model(torch.randn(2, 3, 16, 16), features="stage")
    assert [tuple(m.shape[1:]) for m in stages] == [(16, 16, 16), (32, 8, 8), (64, 4, 4), (128, 2, 2)]
    _, blocks = model(torch.randn(2, 3, 16, 16), features="block")
    assert len(blocks) == 6
    assert model.embed(torch.randn(2, 3, 16, 16)).shape == (2, 128)
    with pytest.raises(ConfigError, match="features='layer'"):
        model(torch.randn(2, 3, 16, 16), features="layer")  # type: ignore[call-overload]


def test_the_units_of_the_papers_network() -> None:
    model = ebnet.create_model("ebnet-1262", num_classes=10)
    layers = model.binary_layers()
    assert len(layers) == 33
    assert sum(layer.weight.numel() for layer in layers.values()) == 4 * 9_586_688
    first = layers["0.0.0"]
    assert (first.in_channels, first.out_channels, first.groups, first.num_experts) == (64, 128, 4, 4)
    mixing = layers["3.1.2"]
    assert (mixing.kernel_size, mixing.groups, mixing.in_channels) == ((1, 1), 1, 1024)


def test_moves_through_the_stages() -> None:
    torch.manual_seed(0)
    model = ebnet.create_model(SMALL, num_classes=5, stem="cifar").eval()
    images = torch.randn(8, 3, 12, 12)
    model.set_precision(Precision.BINARY_INPUT)
    one = model(images)
    model.replicate(3)
    assert model.config.experts == 3
    assert torch.allclose(model(images), one, atol=1e-5), "replication keeps the function"
    experts = model.experts(images)
    assert experts.shape == (len(model.binary_layers()), 8)
    assert len(experts.unique()) > 1
    assert not torch.allclose(model.set_precision("binary")(images), one)
    assert model.precision is Precision.BINARY
    assert all(layer.precision is Precision.BINARY for layer in model.binary_layers().values())


def test_experts_leaves_the_mode_and_the_statistics_alone() -> None:
    model = ebnet.create_model(SMALL, experts=2, stem="cifar").train()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    model.experts(torch.randn(2, 3, 8, 8))
    assert model.training
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
    with pytest.raises(ConfigError, match="mixes its experts"):
        ebnet.create_model(SMALL, experts=2, conv="cond").experts(torch.randn(2, 3, 8, 8))


def test_saves_and_loads(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = ebnet.create_model(SMALL, experts=2, num_classes=5, scaling=True, precision="binary", stem="cifar").eval()
    images = torch.randn(3, 3, 12, 12)
    model.save_pretrained(tmp_path / "net")
    again = ebnet.load_pretrained(tmp_path / "net")
    assert again.config == model.config
    assert again.precision is Precision.BINARY
    assert torch.equal(again(images), model(images)), "the scale is not folded a second time"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda c: c.update(format="other"), "does not describe a network"),
        (lambda c: c.update(version=99), "version 99"),
        (lambda c: c.pop("network"), "has no 'network'"),
        (lambda c: c["network"].update(arch="1121-0.125-1:1:2:3"), "3 groups do not divide"),
        (lambda c: c["network"].update(colour="red"), "unknown network settings colour"),
        (lambda c: c["network"].update(experts=True), "experts=True"),
        (lambda c: c["network"].update(stem="tree"), "stem='tree'"),
        (lambda c: c["network"].update(temperature=-1), "temperature=-1"),
        (lambda c: c["network"].update(scaling="yes"), "scaling='yes'"),
        (lambda c: c.update(network=[1]), "table of names and values"),
        (lambda c: c.update(precision="half"), "precision='half'"),
        (lambda c: c["network"].update(experts=3), "does not fit the network"),
    ],
)
def test_a_corrupt_config_is_named(tmp_path: Path, change, why: str) -> None:  # type: ignore[no-untyped-def]
    ebnet.create_model(SMALL, experts=2, num_classes=5, stem="cifar").save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    change(config)
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match=why):
        ebnet.load_pretrained(tmp_path)


def test_missing_and_damaged_files(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="does not exist"):
        ebnet.load_pretrained(tmp_path)
    ebnet.create_model(SMALL, stem="cifar").save_pretrained(tmp_path)
    weights = (tmp_path / "model.safetensors").read_bytes()
    (tmp_path / "model.safetensors").write_bytes(weights[: len(weights) // 2])
    with pytest.raises(CheckpointError, match="is damaged"):
        ebnet.load_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match="does not exist"):
        ebnet.load_pretrained(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(CheckpointError, match="not JSON"):
        ebnet.load_pretrained(tmp_path)


def test_wrong_images() -> None:
    model = ebnet.create_model(SMALL, stem="cifar")
    with pytest.raises(ShapeError, match=r"got a tensor \(2, 1, 8, 8\)"):
        model(torch.zeros(2, 1, 8, 8))
    with pytest.raises(ShapeError, match="uint8"):
        model(torch.zeros(2, 3, 8, 8, dtype=torch.uint8))
    with pytest.raises(NonFiniteError, match="NaN or infinity"):
        model(torch.full((2, 3, 8, 8), float("inf")))


@pytest.mark.parametrize("name", sorted(NAMED))
def test_the_registry(name: str) -> None:
    assert name in ebnet.list_models()
    with torch.device("meta"):
        model = ebnet.create_model(name, num_classes=3)
    assert model.config.num_classes == 3


def test_wrong_settings() -> None:
    with pytest.raises(ConfigError, match="unknown network settings expert;"):
        ebnet.create_model(SMALL, expert=4)
    with pytest.raises(ConfigError, match="experts=0"):
        ebnet.create_model(SMALL, experts=0)
    with pytest.raises(ConfigError, match="precision=1"):
        ebnet.create_model(SMALL, precision=1)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="'arch'"):
        NetworkConfig.from_dict({})


def test_channels_last() -> None:
    torch.manual_seed(0)
    model = ebnet.create_model(SMALL, experts=2, num_classes=5, stem="cifar", precision="binary_input").eval()
    images = torch.randn(4, 3, 12, 12)
    expected = model(images)
    model.to(memory_format=torch.channels_last)
    assert torch.allclose(model(images.contiguous(memory_format=torch.channels_last)), expected, atol=1e-5)


def test_a_compiled_block() -> None:
    torch.manual_seed(0)
    block = ebnet.create_model(SMALL, experts=2, precision="binary_input").stages[3][0].eval()  # type: ignore[index]
    x = torch.randn(4, 32, 6, 6)
    assert torch.allclose(torch.compile(block, backend="eager")(x), block(x), atol=1e-5)


def test_distributed_data_parallel(tmp_path: Path) -> None:
    """One process suffices to see that every parameter takes part and features come through the wrapper."""
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/rendezvous", rank=0, world_size=1)
    try:
        model = ebnet.create_model(SMALL, experts=3, num_classes=5, stem="cifar", precision="binary_input")
        wrapped = DistributedDataParallel(model)
        for _ in range(2):
            logits, maps = wrapped(torch.randn(2, 3, 12, 12), features="stage")
            (logits.square().sum() + sum(m.square().mean() for m in maps)).backward()
        assert all(p.grad is not None for p in model.parameters())
    finally:
        torch.distributed.destroy_process_group()


def test_units_that_are_no_native_operation_are_told() -> None:
    network = ebnet.create_model(SMALL, experts=2, precision="binary")
    images = torch.randn(2, 3, 32, 32)
    expected = network.eval()(images)
    assert network.through_torch() == {}
    seen = []
    unit = network.get_submodule("stages.1.0.units.0")
    hook = unit.get_submodule("norm").register_forward_hook(lambda _, __, y: seen.append(y))
    assert torch.allclose(network(images), expected, rtol=1e-4, atol=1e-4)
    assert len(seen) == 1
    assert network.through_torch() == {"hooks on its layers": ["stages.1.0.units.0"]}
    hook.remove()
    network(images)
    assert network.through_torch() == {}
    mixing = ebnet.create_model(SMALL, experts=2, conv="cond")
    mixing.eval()(images)
    assert list(mixing.through_torch()) == ["CondBinaryConv2d"]
