"""RPReLU (ReActNet, Liu et al., 2020): PReLU with learned shifts before and after it."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class RPReLU(nn.Module):
    """prelu(x - gamma) + zeta, gamma, zeta and the slope learned for each channel (eq. 2)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.zeros(channels))
        self.zeta = nn.Parameter(torch.zeros(channels))
        self.weight = nn.Parameter(torch.full((channels,), 0.25))

    def forward(self, x: Tensor) -> Tensor:
        shifted = x - self.gamma.view(-1, 1, 1)
        return F.prelu(shifted, self.weight) + self.zeta.view(-1, 1, 1)
