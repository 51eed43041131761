"""The networks that run, the same in every process."""

import torch
from torch import Tensor, nn

import bireal18
import ebnet
import resnet18
from peers import EXPERTS, NETWORK, SIDE
from pictures import fit, pictures

CALIBRATION, CHECK = 16, 8
"""How many pictures the int8 scales are found on, and on how many others logits are compared."""


def calibration() -> Tensor:
    return pictures(CALIBRATION, SIDE, seed=1)


def make(name: str) -> nn.Module:
    torch.manual_seed(0)
    if name == NETWORK:
        return ebnet.create_model(NETWORK, experts=EXPERTS, precision="binary").eval()
    model = {"resnet18": resnet18.resnet18, "bireal18": bireal18.bireal18}[name]()
    fit(model, calibration())
    return model
