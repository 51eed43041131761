"""Ensembles: the mean of networks that know nothing of each other, stored, counted, packed and run as one."""

from pathlib import Path

import numpy as np
import pytest
import torch

import ebnet
from ebnet.cost import profile
from ebnet.errors import ConfigError
from ebnet.models.network import ExpertBinaryNetwork
from ebnet.packing.unpack import unpack
from ebnet.packing.verify import verify

SMALL = {"num_classes": 5, "stem": "cifar", "stem_width": 16, "shortcut": "none"}


def ensemble(precision: str = "binary", members: int = 3, **settings: object) -> ExpertBinaryNetwork:
    torch.manual_seed(4)
    return ebnet.create_model("1111-0.25-1:1:1:1", precision, members=members, **(SMALL | settings)).eval()


def images(count: int = 6) -> torch.Tensor:
    return torch.randn(count, 3, 12, 12, generator=torch.Generator().manual_seed(8))


def test_logits_are_the_mean_of_the_members() -> None:
    network = ensemble(experts=2)
    singles = [member._alone(images(), "stage") for member in network.members]
    logits, maps = network(images(), "stage")
    torch.testing.assert_close(logits, sum(one for one, _ in singles) / 3)
    assert [tuple(place.shape[:2]) for place in maps] == [(6, 3 * width) for width in (16, 32, 64, 128)]
    features = network.embed(images())
    assert features.shape == (6, 3 * 128)
    torch.testing.assert_close(network.classify(features), logits)
    assert not torch.equal(singles[0][0], singles[1][0])


def test_layers_of_all_members_have_names() -> None:
    network = ensemble(experts=2)
    names = list(network.binary_layers())
    assert names[:2] == ["0.0.0", "0.0.1"]
    assert names[8:10] == ["member1.0.0.0", "member1.0.0.1"]
    assert network.experts(images()).shape == (24, 6)


def test_precision_and_experts_are_all_members() -> None:
    network = ensemble("binary_input").replicate(2).set_precision("binary")
    for member in network.members:
        assert str(member.precision) == "binary"
        assert member.config.experts == 2
        assert all(layer.num_experts == 2 for layer in member.binary_layers().values())


def test_kept_on_disk(tmp_path: Path) -> None:
    network = ensemble(members=2)
    again = ebnet.load_pretrained(network.save_pretrained(tmp_path))
    torch.testing.assert_close(again(images()), network(images()))


def test_it_costs_as_much_as_its_members() -> None:
    one, three = profile(ensemble(members=1), 12), profile(ensemble(), 12)
    for name in ("bops", "real_macs", "flops", "binary_weights", "real_parameters", "bytes_fp32"):
        assert getattr(three, name) == pytest.approx(3 * getattr(one, name), abs=2), name
    assert {layer.name for layer in three.layers} >= {"0.0.0", "member2.0.0.0", "member2.classifier"}


@pytest.mark.parametrize("reals", ["fp32", "fp16"])
def test_one_file_that_unpacks_again(reals: str, tmp_path: Path) -> None:
    network = ensemble(experts=2)
    engine = ebnet.load(ebnet.pack(network, tmp_path / "net.ebn", reals=reals))  # type: ignore[arg-type]
    assert [op["op"] for op in engine.program[-3:]] == ["concat", "global_pool", "linear"]
    assert verify(engine, network, images().numpy()).passed
    again = unpack(tmp_path / "net.ebn")
    np.testing.assert_allclose(again(images()).detach().numpy(), engine(images()), rtol=1e-4, atol=1e-5)


def test_a_member_that_was_changed_is_told(tmp_path: Path) -> None:
    network = ensemble()
    engine = ebnet.load(ebnet.pack(network, tmp_path / "net.ebn"))
    with torch.no_grad():
        network.members[2].classifier.bias[1] += 1.0
    assert verify(engine, network, images().numpy()).tensors_differ == ["classifier.bias"]


def test_what_cannot_be_packed(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="an ensemble with head_width cannot be packed"):
        ebnet.pack(ensemble(head_width=8), tmp_path / "net.ebn")
    with pytest.raises(ConfigError, match="the joined classifier of an ensemble stays real"):
        ebnet.pack(ensemble(), tmp_path / "net.ebn", reals="int8", calibrate=images().numpy())
    narrow = ebnet.create_model("1111-0.0625-1:1:1:1", "binary", members=17, stem="cifar", stem_width=4)
    with pytest.raises(ConfigError, match="joins at most 16 members, and as many branches"):
        ebnet.pack(narrow, tmp_path / "net.ebn")
    with pytest.raises(ConfigError, match="members=0: expected a whole number of at least 1"):
        ensemble(members=0)
