"""ResNet-18 (He et al., 2016) in plain torch: what a user would run instead."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval


class BasicBlock(nn.Module):
    def __init__(self, cin: int, cout: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(cout)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or cin != cout:
            self.shortcut = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


def resnet18(classes: int = 1000) -> nn.Sequential:
    """1.81e9 multiply-accumulates at 224x224, 11.7 million parameters."""
    blocks: list[nn.Module] = []
    cin = 64
    for cout, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        blocks += [BasicBlock(cin, cout, stride), BasicBlock(cout, cout, 1)]
        cin = cout
    stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, classes)).eval()


def write(model: nn.Sequential, graph: Any, x: Any) -> Any:
    """The same network in another runtime, layer by layer, batch norms folded: the value of its logits.

    `graph` has a method for each kind of layer, which takes the values it reads and gives the one it makes.
    """
    conv, norm, _, pool, *blocks, _, _, classifier = model
    x = graph.max_pool(graph.conv(x, fuse_conv_bn_eval(conv, norm), relu=True), pool)
    for block in blocks:
        skip = x
        if isinstance(block.shortcut, nn.Sequential):
            skip = graph.conv(x, fuse_conv_bn_eval(*block.shortcut), relu=False)
        y = graph.conv(x, fuse_conv_bn_eval(block.conv1, block.norm1), relu=True)
        y = graph.conv(y, fuse_conv_bn_eval(block.conv2, block.norm2), relu=False)
        x = graph.add(y, skip, relu=True)
    return graph.linear(graph.mean(x), classifier)
