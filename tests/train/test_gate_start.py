"""Gates from clusters: the nearest centre, by an independent computation of distances."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ebnet.models.network import ExpertBinaryNetwork
from ebnet.train.gate_start import (
    expert_layers,
    gate_inputs,
    has_equal_experts,
    k_means,
    nearest_centre,
    start_gates_from_clusters,
)
from ebnet.train.phases import PHASES
from tests.train.tiny import tiny


def _blobs(count: int, channels: int, clusters: int, seed: int, spread: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    centres = generator.normal(size=(clusters, channels)) * 3
    labels = np.arange(count) % clusters
    return centres[labels] + spread * generator.normal(size=(count, channels)), labels


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 6), st.integers(2, 12), st.integers(0, 1000))
def test_the_gate_sends_every_image_to_its_nearest_centre(experts: int, channels: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    means = generator.normal(size=(200, channels)) * generator.uniform(0.1, 5, channels) + generator.normal(
        size=channels
    )
    weight, bias = nearest_centre(means, experts, seed)
    x = (means - means.mean(0)) / means.std(0)
    centres = k_means(x, experts, seed)
    distances = np.array([[np.linalg.norm(point - centre) for centre in centres] for point in x])
    scores = means @ weight.T + bias
    nearest, chosen = distances.argmin(1), scores.argmax(1)
    rows = np.arange(len(x))
    np.testing.assert_allclose(distances[rows, chosen], distances[rows, nearest], rtol=1e-9)
    assert (scores - scores.mean(1, keepdims=True)).std() == pytest.approx(1.0)


def test_clusters_that_are_there_are_found() -> None:
    points, labels = _blobs(400, 8, 4, seed=5)
    weight, bias = nearest_centre(points, 4, seed=0)
    chosen = (points @ weight.T + bias).argmax(1)
    assert len({(a, b) for a, b in zip(labels, chosen, strict=True)}) == 4  # one expert for each, and each its own


def test_a_channel_that_never_varies_has_no_say() -> None:
    points, _ = _blobs(100, 5, 3, seed=1)
    points[:, 2] = 7.0
    weight, bias = nearest_centre(points, 3, seed=0)
    assert (weight[:, 2] == 0).all()
    assert np.isfinite(weight).all()
    assert np.isfinite(bias).all()


def test_equal_images_still_give_a_finite_gate() -> None:
    weight, bias = nearest_centre(np.ones((20, 4)), 3, seed=0)
    assert np.isfinite(weight).all()
    assert np.isfinite(bias).all()


def _replicated(experts: int = 3) -> ExpertBinaryNetwork:
    torch.manual_seed(0)
    stage = PHASES["stage1-one-expert"]
    network = ExpertBinaryNetwork(stage.config(tiny(), 10, 3), stage.precision)
    return network.replicate(experts)


def test_all_layers_of_a_replicated_network_get_their_gates() -> None:
    """From the very means the layers see: computed here by hand, with one image at a time."""
    network, pixels = _replicated(), torch.randn(40, 3, 8, 8, generator=torch.Generator().manual_seed(2))
    assert has_equal_experts(network)
    before = {name: layer.gate.linear.weight.clone() for name, layer in expert_layers(network).items()}  # type: ignore[union-attr]
    network.train()
    start_gates_from_clusters(network, pixels, seed=4)
    assert network.training
    assert len(before) > 8
    means = gate_inputs(network, pixels)
    for number, (name, layer) in enumerate(expert_layers(network).items()):
        assert layer.gate is not None
        assert not torch.equal(layer.gate.linear.weight, before[name])
        weight, bias = nearest_centre(means[name].double().numpy(), 3, 4000 + number)
        torch.testing.assert_close(layer.gate.linear.weight.detach(), torch.from_numpy(weight).float())
        torch.testing.assert_close(layer.gate.linear.bias.detach(), torch.from_numpy(bias).float())
    network(pixels)
    assert all(len(layer.last_experts.unique()) == 3 for layer in expert_layers(network).values())  # type: ignore[union-attr]


def test_the_means_are_those_that_the_layer_itself_takes() -> None:
    network, pixels = _replicated().eval(), torch.randn(7, 3, 8, 8)
    seen: dict[str, torch.Tensor] = {}
    for name, layer in expert_layers(network).items():
        assert layer.gate is not None
        layer.gate.register_forward_pre_hook(lambda _, inputs, name=name: seen.update({name: inputs[0].detach()}))
    with torch.no_grad():
        network(pixels)
    for name, means in gate_inputs(network, pixels).items():
        torch.testing.assert_close(means, seen[name])


def test_experts_that_have_learnt_are_not_equal() -> None:
    network = _replicated()
    next(iter(expert_layers(network).values())).weight.data[0] += 0.1
    assert not has_equal_experts(network)
    stage = PHASES["stage1-one-expert"]
    assert not has_equal_experts(ExpertBinaryNetwork(stage.config(tiny(), 10, 3), stage.precision))
