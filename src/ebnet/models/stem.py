"""The real-valued first layers: from the picture to 64 channels, or fewer for a narrow network."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from ebnet.errors import ConfigError
from ebnet.models.cell import Pair
from ebnet.models.layer_layout import ConvLayout
from ebnet.nn.real_layer import MaxPoolLayer, RealGraph, RealLayer, Step


class ConvNorm(nn.Module):
    """Real convolution, batch norm and, unless said otherwise, ReLU."""

    def __init__(self, layout: ConvLayout, activated: bool = True) -> None:
        super().__init__()
        self.conv = nn.Conv2d(
            layout.cin, layout.cout, layout.kernel, layout.stride, layout.padding, groups=layout.groups, bias=False
        )
        self.norm = nn.BatchNorm2d(layout.cout)
        self.act = nn.ReLU() if activated else None

    @property
    def layer(self) -> RealLayer:
        return RealLayer(self.conv, self.norm, self.act)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(self.conv(x))
        return x if self.act is None else self.act(x)


class ImageNetStem(nn.Module):
    """The cheap /4 stem behind the paper's 1.1e8 FLOPs: half its channels are convolved, half are pooled."""

    def __init__(self, convs: dict[str, ConvLayout]) -> None:
        super().__init__()
        self.conv1 = ConvNorm(convs["conv1"])
        self.squeeze = ConvNorm(convs["squeeze"])
        self.conv2 = ConvNorm(convs["conv2"])
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.mix = ConvNorm(convs["mix"])
        first, squeeze, second, mix = (conv.layer for conv in (self.conv1, self.squeeze, self.conv2, self.mix))
        pool = Step(MaxPoolLayer(self.pool), 1, 3, channel=convs["conv2"].cout)
        self._graph = RealGraph([Step(first, 0, 1), Step(squeeze, 1, 2), Step(second, 2, 3), pool, Step(mix, 3, 4)])

    def forward(self, images: Tensor) -> Tensor:
        if self._graph.serves(images):
            return self._graph(images)
        x = self.conv1(images)
        return self.mix(torch.cat((self.conv2(self.squeeze(x)), self.pool(x)), 1))


class Conv7x7Stem(nn.Module):
    """ResNet's /4 stem: 7x7 stride 2, then max pool."""

    def __init__(self, convs: dict[str, ConvLayout]) -> None:
        super().__init__()
        self.conv = ConvNorm(convs["conv"])
        self.pool = nn.MaxPool2d(3, 2, 1)
        self._graph = RealGraph([Step(self.conv.layer, 0, 1), Step(MaxPoolLayer(self.pool), 1, 2)])

    def forward(self, images: Tensor) -> Tensor:
        return self._graph(images) if self._graph.serves(images) else self.pool(self.conv(images))


class Conv3x3Stem(nn.Module):
    """The /8 stem of DARTS's ImageNet networks, for cells: three 3x3 of stride 2, of which the last two are read.

    After the last convolution there is no ReLU; the map before it is read after its own.
    """

    def __init__(self, convs: dict[str, ConvLayout]) -> None:
        super().__init__()
        self.conv1, self.conv2 = ConvNorm(convs["conv1"]), ConvNorm(convs["conv2"])
        self.conv3 = ConvNorm(convs["conv3"], activated=False)
        self._older = RealGraph([Step(self.conv1.layer, 0, 1), Step(self.conv2.layer, 1, 2)])
        self._newer = RealGraph([Step(self.conv3.layer, 0, 1)])

    def forward(self, images: Tensor) -> Pair:
        older = self._older(images) if self._older.serves(images) else self.conv2(self.conv1(images))
        return Pair(older, self._newer(older) if self._newer.serves(older) else self.conv3(older))


class CifarStem(nn.Module):
    """One 3x3 convolution that keeps the size, for small pictures."""

    def __init__(self, convs: dict[str, ConvLayout]) -> None:
        super().__init__()
        self.conv = ConvNorm(convs["conv"])
        self._graph = RealGraph([Step(self.conv.layer, 0, 1)])

    def forward(self, images: Tensor) -> Tensor:
        return self._graph(images) if self._graph.serves(images) else self.conv(images)


STEMS: dict[str, Callable[[dict[str, ConvLayout]], nn.Module]] = {
    "imagenet": ImageNetStem,
    "conv7x7": Conv7x7Stem,
    "conv3x3": Conv3x3Stem,
    "cifar": CifarStem,
}


def make_stem(kind: str, convs: dict[str, ConvLayout]) -> nn.Module:
    if kind not in STEMS:
        raise ConfigError(f"stem={kind!r}: expected one of {', '.join(STEMS)}")
    return STEMS[kind](convs)
