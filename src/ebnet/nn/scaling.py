"""Data-driven per-channel scaling of a binary convolution's output (Real-to-Binary, Martinez et al., 2020)."""

import torch
from torch import Tensor, nn

from ebnet.arch import SCALING_REDUCTION


class DataDrivenScaling(nn.Module):
    """sigmoid(W2 relu(W0 mean(x))): one factor per sample and output channel, from the layer's real-valued input."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        hidden = max(1, out_channels // SCALING_REDUCTION)
        self.squeeze = nn.Linear(in_channels, hidden, bias=False)
        self.excite = nn.Linear(hidden, out_channels, bias=False)

    def forward(self, mean: Tensor) -> Tensor:
        """Factors [batch, out] from the channels' spatial means [batch, in]."""
        return torch.sigmoid(self.excite(torch.relu(self.squeeze(mean))))
