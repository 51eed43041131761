"""Data-driven per-channel scaling of a binary convolution's output (Real-to-Binary, Martinez et al., 2020)."""

import torch
from torch import Tensor, nn


class DataDrivenScaling(nn.Module):
    """sigmoid(W2 relu(W0 mean(x))): one factor per sample and output channel, from the layer's real-valued input."""

    REDUCTION = 8

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        hidden = self.hidden_width(out_channels)
        self.squeeze = nn.Linear(in_channels, hidden, bias=False)
        self.excite = nn.Linear(hidden, out_channels, bias=False)

    @classmethod
    def hidden_width(cls, out_channels: int) -> int:
        return max(1, out_channels // cls.REDUCTION)

    def forward(self, mean: Tensor) -> Tensor:
        """Factors [batch, out] from the channels' spatial means [batch, in]."""
        return torch.sigmoid(self.excite(torch.relu(self.squeeze(mean))))
