"""Bi-Real Net 18 (Liu et al., 2018) in plain torch: the binary network that other binary engines can run.

Every 3x3 convolution of ResNet-18 is binary, with a skip around it; first and last layer and shortcuts are real.
Binary inputs are padded with +1, and where the stride is 2 only at the right and the bottom (the maximum too): the
padding that OpenVINO and Larq Compute Engine both have.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.fusion import fuse_conv_bn_eval


class BinaryUnit(nn.Module):
    """sign, binary 3x3 convolution, batch norm, skip."""

    def __init__(self, cin: int, cout: int, stride: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, 3, stride, bias=False)
        self.norm = nn.BatchNorm2d(cout)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or cin != cout:
            conv = nn.Conv2d(cin, cout, 1, bias=False)
            self.shortcut = nn.Sequential(nn.AvgPool2d(stride), conv, nn.BatchNorm2d(cout))

    @property
    def padding(self) -> tuple[int, int]:
        """Before and after, of an even height or width."""
        return (1, 1) if self.conv.stride == (1, 1) else (0, 1)

    @property
    def signs(self) -> Tensor:
        """The weights, +1 or -1."""
        return torch.where(self.conv.weight.detach() >= 0, 1.0, -1.0)

    def affine(self) -> tuple[Tensor, Tensor]:
        """What the batch norm does to the sums of products: times the first, plus the second."""
        scale = self.norm.weight / (self.norm.running_var + self.norm.eps).sqrt()  # type: ignore[operator]
        return scale.detach(), (self.norm.bias - self.norm.running_mean * scale).detach()

    def products(self, x: Tensor) -> Tensor:
        """Their sums: integers."""
        signs = F.pad(torch.where(x >= 0, 1.0, -1.0), self.padding * 2, value=1.0)
        return F.conv2d(signs, self.signs, stride=self.conv.stride)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.products(x)) + self.shortcut(x)


def bireal18(classes: int = 1000) -> nn.Sequential:
    """1.68e9 binary multiply-accumulates at 224x224."""
    units: list[nn.Module] = []
    cin = 64
    for cout, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        units += [BinaryUnit(cin, cout, stride), *(BinaryUnit(cout, cout, 1) for _ in range(3))]
        cin = cout
    stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.MaxPool2d(3, 2, ceil_mode=True)]
    return nn.Sequential(*stem, *units, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, classes)).eval()


def write(model: nn.Sequential, graph: Any, x: Any) -> Any:
    """As `resnet18.write`."""
    conv, norm, pool, *units, _, _, classifier = model
    x = graph.max_pool(graph.conv(x, fuse_conv_bn_eval(conv, norm), relu=False), pool)
    for unit in units:
        skip = x
        if isinstance(unit.shortcut, nn.Sequential):
            pool, conv, norm = unit.shortcut
            skip = graph.conv(graph.average_pool(x, pool.kernel_size), fuse_conv_bn_eval(conv, norm), relu=False)
        x = graph.add(graph.binary_conv(x, unit), skip, relu=False)
    return graph.linear(graph.mean(x), classifier)
