"""The real-valued skip where a block changes width or size (appendix, "Real-valued downsampling decomposition")."""

from collections.abc import Callable

from torch import Tensor, nn

from ebnet.models.layout import ConvLayout

ACTIVATIONS: dict[str, Callable[[int], nn.Module]] = {
    "none": lambda channels: nn.Identity(),
    "linear": lambda channels: nn.Identity(),
    "relu": lambda channels: nn.ReLU(),
    "prelu": nn.PReLU,
}


class Projection(nn.Module):
    """Average pool, then Cin -> Cin/r -> Cout, each with batch norm and the variant's activation.

    The variant ``none`` is the undecomposed Cin -> Cout with batch norm.
    """

    def __init__(self, convs: tuple[ConvLayout, ...], stride: int, variant: str) -> None:
        super().__init__()
        activation = ACTIVATIONS[variant]
        self.pool = _pool(stride)
        self.conv1 = nn.Conv2d(convs[0].cin, convs[0].cout, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(convs[0].cout)
        self.act1 = activation(convs[0].cout)
        self.decomposed = len(convs) > 1
        if self.decomposed:
            self.conv2 = nn.Conv2d(convs[1].cin, convs[1].cout, 1, bias=False)
            self.norm2 = nn.BatchNorm2d(convs[1].cout)
            self.act2 = activation(convs[1].cout)

    def forward(self, x: Tensor) -> Tensor:
        x = self.act1(self.norm1(self.conv1(self.pool(x))))
        return self.act2(self.norm2(self.conv2(x))) if self.decomposed else x


def _pool(stride: int) -> nn.Module:
    if stride == 1:
        return nn.Identity()
    return nn.AvgPool2d(stride, stride, ceil_mode=True, count_include_pad=False)
