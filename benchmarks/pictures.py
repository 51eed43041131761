"""Pictures that a network without training tells apart, and networks that tell them apart.

Noise looks alike to every layer that averages, so each picture has a colour and a contrast of its own, large patches,
and finer ones on top.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def pictures(count: int, side: int, seed: int) -> Tensor:
    """Normalised, channels first."""
    random = torch.Generator().manual_seed(seed)
    layers = [torch.randn(count, 3, patches, patches, generator=random) for patches in (1, 2, 8, 32)]
    found = torch.stack([F.interpolate(layer, size=(side, side), mode="bilinear") for layer in layers]).sum(0)
    return found / found.std() * torch.exp(torch.randn(count, 1, 1, 1, generator=random) / 2)


def fit(model: nn.Module, images: Tensor) -> None:
    """Weights by He et al. (2015), and the batch norms' statistics on `images`, so that values stay in range."""
    torch.manual_seed(0)
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight)
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = None  # the plain mean over all batches
    model.train()
    with torch.no_grad():
        model(images)
    model.eval()


def error(logits: Tensor, expected: Tensor) -> float:
    """How far the logits of the median picture are off, relative to what tells the pictures' expected logits apart.

    The median, since one value within float error of 0 can get the other sign in a binary network, which changes all
    that follows for that picture.
    """
    spread = (expected - expected.mean(0)).norm(dim=1).mean()
    return ((logits - expected).norm(dim=1).median() / spread).item()
