"""A phase that begins with a trained network of any origin: fine-tuning (`stage.NAME.start` of a recipe).

What the network has learnt stays but for its classifier, which is fresh where the classes are others. Its batch norms
take their statistics from the new images, and their weights and biases change so that it still computes the same:
norm(x) = a x + b has to stay, so with mean m and deviation s of what it sees now the weight is a s, the bias b + a m.
Without that, the first training step, which normalises by its own batch, would be taken by another network. One that
comes from a packed file (`ebnet.unpack`) has no statistics at all before.
"""

from dataclasses import replace

import torch
from torch import Tensor, nn

from ebnet.errors import CheckpointError
from ebnet.models.config import NetworkConfig
from ebnet.models.network import ExpertBinaryNetwork
from ebnet.packing.source import open_packable
from ebnet.train.distributed import gather_over_ranks
from ebnet.train.phases import Phase, differing_settings

IMAGES = 1000
"""Training images that the statistics are taken from."""

_BATCH = 250


def begin_with(source: str, config: NetworkConfig, phase: Phase, seed: int) -> ExpertBinaryNetwork:
    """The trained network `source` as the start of a phase whose network has `config`."""
    trained = open_packable(source).model
    theirs = trained.config
    differing = differing_settings(replace(theirs, num_classes=config.num_classes), config, phase.precision)
    if differing:
        raise CheckpointError(f"{source} does not fit {phase.name} of the recipe: {', '.join(differing)}")
    torch.manual_seed(seed)  # of the classifier
    network = ExpertBinaryNetwork(config, phase.precision)
    known = trained.state_dict()
    if theirs.num_classes != config.num_classes:
        known |= {name: tensor for name, tensor in network.state_dict().items() if "classifier." in name}
    network.load_state_dict(known)
    return network


@torch.no_grad()
def retake_statistics(network: ExpertBinaryNetwork, pixels: Tensor) -> None:
    """Give every batch norm the statistics of what it sees of `pixels`, and leave what the network computes as it is.

    Args:
        pixels: this process's part of the images, normalised; the statistics are those of all processes together.
    """
    norms = [module for module in network.modules() if isinstance(module, nn.BatchNorm2d)]
    sums = {norm: torch.zeros(3, norm.num_features, dtype=torch.float64, device=pixels.device) for norm in norms}

    def count(norm: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        values = inputs[0].double()
        assert isinstance(norm, nn.BatchNorm2d)
        number = torch.full_like(sums[norm][0], values[:, 0].numel())
        sums[norm] += torch.stack((number, values.sum((0, 2, 3)), values.square().sum((0, 2, 3))))

    hooks = [norm.register_forward_pre_hook(count) for norm in norms]
    # The native layers compute their norms themselves unless these are watched.
    hooks += [norm.register_forward_hook(lambda *_: None) for norm in norms]
    try:
        network.eval()
        for batch in pixels.split(_BATCH):
            network(batch)
    finally:
        for hook in hooks:
            hook.remove()
    for norm, own in sums.items():
        number, total, squares = gather_over_ranks(own[None]).sum(0)
        _set_statistics(norm, total / number, squares / number - (total / number).square())


def _set_statistics(norm: nn.BatchNorm2d, mean: Tensor, variance: Tensor) -> None:
    assert norm.running_mean is not None
    assert norm.running_var is not None
    variance = variance.clamp(min=0)
    slope = norm.weight.double() / (norm.running_var.double() + norm.eps).sqrt()
    offset = norm.bias.double() - norm.running_mean.double() * slope
    norm.weight.copy_(slope * (variance + norm.eps).sqrt())
    norm.bias.copy_(offset + slope * mean)
    norm.running_mean.copy_(mean)
    norm.running_var.copy_(variance)
