"""Networks of every weight and activation quantizer: they train, also with experts, and old settings are read."""

from pathlib import Path

import pytest
import torch

import ebnet
from ebnet.errors import ConfigError
from ebnet.models.config import NetworkConfig
from ebnet.models.network import ExpertBinaryNetwork
from ebnet.models.registry import create_model
from ebnet.nn.activations import ACTIVATIONS
from ebnet.nn.weights import WEIGHTS
from ebnet.recipe import load_recipe

SMALL = {"num_classes": 4, "stem": "cifar", "stem_width": 8, "shortcut": "none"}


def small(precision: str = "binary", **settings: object) -> ExpertBinaryNetwork:
    torch.manual_seed(0)
    return create_model("1111-0.125-1:1:1:1", precision, **(SMALL | settings))


PAIRS = [(weights, "sign") for weights in WEIGHTS] + [("learned-scale", name) for name in ACTIVATIONS]


@pytest.mark.parametrize("experts", [1, 3])
@pytest.mark.parametrize(("weights", "activations"), PAIRS)
def test_every_parameter_that_may_learn_does(weights: str, activations: str, experts: int) -> None:
    network = small(weights=weights, activations=activations, experts=experts)
    images = torch.randn(6, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    network(images).square().sum().backward()
    idle = [name for name, p in network.named_parameters() if p.requires_grad and p.grad is None]
    assert idle == []
    gradients = [p.grad for p in network.parameters() if p.grad is not None]
    assert all(torch.isfinite(gradient).all() for gradient in gradients)
    for name, layer in network.binary_layers().items():
        assert layer.weight.grad is not None, name
        assert layer.weight.grad.abs().sum() > 0, name


def test_the_native_unit_serves_the_signs_and_no_others() -> None:
    images = torch.randn(2, 3, 8, 8)
    for settings in ({}, {"weights": "sign"}, {"activations": "sign-polynomial"}):
        network = small(**settings)
        network(images)
        assert network.through_torch() == {}
    # What takes no part yet is no reason: Stage I of other weights, a teacher of other activations.
    for precision, settings in (("binary_input", {"weights": "libra"}), ("real", {"activations": "rsign"})):
        network = small(precision, **settings)
        network(images)
        assert network.through_torch() == {}
    for settings, reason in (
        ({"weights": "libra"}, "Libra weights"),
        ({"activations": "rsign"}, "ShiftedSign activations"),
    ):
        network = small(**settings)
        network(images)
        ((why, names),) = network.through_torch().items()
        assert why == reason
        assert len(names) == 8


def test_quantizers_rest_while_their_stage_has_not_come() -> None:
    network = small("binary_input", weights="ttq", activations="rsign")
    layer = next(iter(network.binary_layers().values()))
    assert not layer.weight_quantizer.positive.requires_grad  # type: ignore[union-attr]
    network.set_precision("binary")
    assert layer.weight_quantizer.positive.requires_grad  # type: ignore[union-attr]
    # ... and starts from the weights as they are by then.
    delta = 0.05 * layer.weight.abs().max()
    expected = layer.weight[layer.weight > delta].mean()
    torch.testing.assert_close(layer.weight_quantizer.positive.detach(), expected.detach())  # type: ignore[union-attr]


def test_without_learned_scales_the_scale_stays() -> None:
    network = small("binary_input", weights="channel-mean").set_precision("binary")
    for layer in network.binary_layers().values():
        assert not layer.scale.requires_grad
        assert layer.scale.tolist() == [1.0] * layer.out_channels


def test_settings_of_earlier_versions() -> None:
    old = {"arch": "1111-0.125-1:1:1:1", "activation_ste": "polynomial"}
    assert NetworkConfig.from_dict(old).activations == "sign-polynomial"
    assert NetworkConfig.from_dict(old | {"activation_ste": "clip"}) == NetworkConfig.from_dict({"arch": old["arch"]})
    assert load_recipe("demo", {"network.activation_ste": "polynomial"}).network.activations == "sign-polynomial"
    with pytest.raises(ConfigError, match="activation_ste"):
        NetworkConfig.from_dict(old | {"activation_ste": "cubic"})


def test_mistakes_are_named() -> None:
    with pytest.raises(ConfigError, match=r"weights='xnor': expected one of learned-scale, sign, channel-mean"):
        small(weights="xnor")
    with pytest.raises(ConfigError, match=r"weights='libra': conv='cond'"):
        small(weights="libra", conv="cond")


def test_what_cannot_be_packed_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"layer 0.0.0 cannot be packed: TrainedTernary weights .* export-onnx"):
        ebnet.pack(small(weights="ttq"), tmp_path / "net.ebn")
    with pytest.raises(ConfigError, match=r"an activation between several bases and their skip"):
        ebnet.pack(small(weights="abc-5"), tmp_path / "net.ebn")
    threshold = small(activations="rsign", scaling=True)
    for layer in threshold.binary_layers().values():
        torch.nn.init.ones_(layer.input_quantizer.threshold)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"data-driven scaling beside learned thresholds"):
        ebnet.pack(threshold, tmp_path / "net.ebn")
