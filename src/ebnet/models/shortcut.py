"""The real-valued skip where a block changes width or size (appendix, "Real-valued downsampling decomposition")."""

from collections.abc import Callable

from torch import Tensor, nn

from ebnet.models.layer_layout import ConvLayout
from ebnet.nn.real_layer import RealGraph, RealLayer, Step

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
        self._graph = self._steps(stride)

    def forward(self, x: Tensor) -> Tensor:
        if self._graph.serves(x):
            return self._graph(x)
        x = self.act1(self.norm1(self.conv1(self.pool(x))))
        return self.act2(self.norm2(self.conv2(x))) if self.decomposed else x

    def _steps(self, stride: int) -> RealGraph:
        steps = [Step(RealLayer(self.conv1, self.norm1, _unless_identity(self.act1), stride), 0, 1)]
        if self.decomposed:
            steps.append(Step(RealLayer(self.conv2, self.norm2, _unless_identity(self.act2)), 1, 2))
        return RealGraph(steps)


def _unless_identity(activation: nn.Module) -> nn.Module | None:
    return None if isinstance(activation, nn.Identity) else activation


def _pool(stride: int) -> nn.Module:
    if stride == 1:
        return nn.Identity()
    return nn.AvgPool2d(stride, stride, ceil_mode=True, count_include_pad=False)
