"""Gates that begin as nearest-centre classifiers of their own input.

A gate sees the channels' spatial means m of its layer's input. Let mu and sd be their mean and deviation over some
training images, x = (m - mu) / sd, and c_1 .. c_N the centres that k-means finds among the x. The nearest centre is

    argmin_i |x - c_i|^2  =  argmax_i <c_i, x> - |c_i|^2 / 2  =  argmax_i <c_i / sd, m> - |c_i|^2 / 2 - <c_i, mu / sd>,

which is a linear gate: the paper's own, with other first weights. Both terms are divided by the deviation of the
scores, less each image's mean score, which neither argmax nor softmax sees: so they spread by one, and the softmax
of the gate's gradient is neither flat nor saturated.

Only equal experts can be given such gates all at once: until they differ, no gate changes what the next one sees.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ebnet.models.network import ExpertBinaryNetwork
from ebnet.nn.expert_conv import ExpertBinaryConv2d
from ebnet.train.distributed import gather_over_ranks

IMAGES = 5000
"""Training images whose channel means are clustered."""

STARTS, LLOYD_STEPS = 3, 15
_BATCH = 250

Points = NDArray[np.float64]


def expert_layers(network: ExpertBinaryNetwork) -> dict[str, ExpertBinaryConv2d]:
    """The layers that choose among several experts, by name, in forward order."""
    layers = network.binary_layers().items()
    return {n: layer for n, layer in layers if isinstance(layer, ExpertBinaryConv2d) and layer.num_experts > 1}


def has_equal_experts(network: ExpertBinaryNetwork) -> bool:
    """Whether the experts were replicated and none has learnt anything of its own yet."""
    layers = expert_layers(network).values()
    return bool(layers) and all(bool((w == w[:1]).all()) for w in (layer.expert_weights for layer in layers))


@torch.no_grad()
def gate_inputs(network: ExpertBinaryNetwork, pixels: Tensor) -> dict[str, Tensor]:
    """The channel means [images, channels] that the gate of each expert layer sees, in evaluation mode."""
    means: dict[str, list[Tensor]] = {}

    def keep(name: str) -> torch.utils.hooks.RemovableHandle:
        means[name] = []
        return layers[name].register_forward_pre_hook(lambda _, inputs: means[name].append(inputs[0].mean((2, 3))))

    layers, was_training = expert_layers(network), network.training
    hooks = [keep(name) for name in layers]
    network.eval()
    try:
        for batch in pixels.split(_BATCH):
            network(batch)
    finally:
        network.train(was_training)
        for hook in hooks:
            hook.remove()
    return {name: torch.cat(parts) for name, parts in means.items()}


@torch.no_grad()
def start_gates_from_clusters(network: ExpertBinaryNetwork, pixels: Tensor, seed: int) -> None:
    """Set the gates of a network of equal experts.

    Args:
        pixels: this process's part of the images, normalised; every process must hold equally many. All of them are
            clustered together, so that every process finds the same gates.
    """
    for number, (name, means) in enumerate(gate_inputs(network, pixels).items()):
        points = gather_over_ranks(means).double().cpu().numpy()
        layer = expert_layers(network)[name]
        weight, bias = nearest_centre(points, layer.num_experts, seed * 1000 + number)
        assert layer.gate is not None
        layer.gate.linear.weight.copy_(torch.from_numpy(weight))
        layer.gate.linear.bias.copy_(torch.from_numpy(bias))


def nearest_centre(means: Points, experts: int, seed: int) -> tuple[Points, Points]:
    """Weight [experts, channels] and bias [experts] of the gate that sends each image to its nearest centre."""
    mu, sd = means.mean(0), means.std(0)
    alive = sd > 1e-6 * sd.max(initial=0.0)  # a channel that never varies says nothing
    x = (means[:, alive] - mu[alive]) / sd[alive]
    c = k_means(x, experts, seed)
    weight = np.zeros((experts, means.shape[1]))
    weight[:, alive] = c / sd[alive]
    bias = -(c**2).sum(1) / 2 - weight @ mu
    scores = means @ weight.T + bias
    spread = (scores - scores.mean(1, keepdims=True)).std()
    return (weight / spread, bias / spread) if spread > 0 else (weight, bias)


def k_means(points: Points, clusters: int, seed: int) -> Points:
    """The centres of the best of several starts, each spread by distance (k-means++) and moved by Lloyd's steps."""
    generator = np.random.default_rng(seed)
    found = [_lloyd(points, _spread_centres(points, clusters, generator)) for _ in range(STARTS)]
    return min(found, key=lambda centres: float(_squared_distances(points, centres).min(1).sum()))


def _spread_centres(points: Points, clusters: int, generator: np.random.Generator) -> Points:
    """Each next centre is a point drawn with a chance proportional to its squared distance from those so far."""
    centres = [points[generator.integers(len(points))]]
    while len(centres) < clusters:
        far = _squared_distances(points, np.array(centres)).min(1)
        total = far.sum()
        chance = far / total if total > 0 else np.full(len(points), 1 / len(points))
        centres.append(points[generator.choice(len(points), p=chance)])
    return np.array(centres)


def _lloyd(points: Points, centres: Points) -> Points:
    for _ in range(LLOYD_STEPS):
        nearest = _squared_distances(points, centres).argmin(1)
        centres = np.array(
            [points[nearest == i].mean(0) if (nearest == i).any() else centre for i, centre in enumerate(centres)]
        )
    return centres


def _squared_distances(points: Points, centres: Points) -> Points:
    """[points, centres]; not below 0, where rounding would put the distance of a point to itself."""
    crossed = (points**2).sum(1)[:, None] + (centres**2).sum(1) - 2 * points @ centres.T
    return np.maximum(crossed, 0.0)
