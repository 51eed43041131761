"""Small Stage II networks whose every number matters: random batch norms, slopes and gates."""

from typing import Any

import torch
from torch import nn

import ebnet
from ebnet.models.network import ExpertBinaryNetwork


def random_network(arch: str, seed: int = 0, **settings: Any) -> ExpertBinaryNetwork:
    """A network of precision ``binary`` in eval mode with nothing left at its initial value."""
    torch.manual_seed(seed)
    settings = {"num_classes": 7, "stem": "cifar", "precision": "binary"} | settings
    model = ebnet.create_model(arch, **settings).eval()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.normal_(module.running_mean, 0.0, 0.3)
            nn.init.uniform_(module.running_var, 0.5, 1.5)
            nn.init.normal_(module.weight, 1.0, 0.3)
            nn.init.normal_(module.bias, 0.0, 0.3)
        elif isinstance(module, nn.PReLU):
            nn.init.uniform_(module.weight, -0.2, 0.6)
    return model
