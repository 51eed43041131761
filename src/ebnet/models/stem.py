"""The real-valued first layers: from the picture to 64 channels, or fewer for a narrow network."""

import torch
from torch import Tensor, nn

from ebnet.errors import ConfigError
from ebnet.models.layout import ConvLayout
from ebnet.nn.real_layer import MaxPoolLayer, RealGraph, RealLayer, Step


class ConvNorm(nn.Module):
    """Real convolution, batch norm, ReLU."""

    def __init__(self, layout: ConvLayout) -> None:
        super().__init__()
        self.conv = nn.Conv2d(
            layout.cin, layout.cout, layout.kernel, layout.stride, layout.kernel // 2, groups=layout.groups, bias=False
        )
        self.norm = nn.BatchNorm2d(layout.cout)

    @property
    def layer(self) -> RealLayer:
        return RealLayer(self.conv, self.norm, nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.norm(self.conv(x)))


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


class CifarStem(nn.Module):
    """One 3x3 convolution that keeps the size, for small pictures."""

    def __init__(self, convs: dict[str, ConvLayout]) -> None:
        super().__init__()
        self.conv = ConvNorm(convs["conv"])
        self._graph = RealGraph([Step(self.conv.layer, 0, 1)])

    def forward(self, images: Tensor) -> Tensor:
        return self._graph(images) if self._graph.serves(images) else self.conv(images)


STEMS: dict[str, type[ImageNetStem] | type[Conv7x7Stem] | type[CifarStem]] = {
    "imagenet": ImageNetStem,
    "conv7x7": Conv7x7Stem,
    "cifar": CifarStem,
}


def make_stem(kind: str, convs: dict[str, ConvLayout]) -> nn.Module:
    if kind not in STEMS:
        raise ConfigError(f"stem={kind!r}: expected one of {', '.join(STEMS)}")
    return STEMS[kind](convs)
