"""Make any torch model an expert binary one: swap its convolutions, then go through the paper's stages.

    python examples/swap_convolutions.py

The first convolution and the classifier stay real, as in the paper. Nothing here knows the model's code: it walks over
its modules, so it works for models from other libraries too.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ebnet.data import Loader, Normalise, PadCrop, open_dataset
from ebnet.nn import ExpertBinaryConv2d, Precision, set_precision

STEPS = 60
EXPERTS = 4


def swap_convolutions(model: nn.Module) -> list[ExpertBinaryConv2d]:
    """Replace every convolution but the first by a binary one of one expert that starts from the same weights."""
    places = [
        (parent, name, child)
        for parent in model.modules()
        for name, child in parent.named_children()
        if isinstance(child, nn.Conv2d)
    ]
    swapped = []
    for parent, name, conv in places[1:]:
        layer = ExpertBinaryConv2d(
            conv.in_channels,
            conv.out_channels,
            conv.kernel_size,  # type: ignore[arg-type]
            conv.stride,  # type: ignore[arg-type]
            conv.padding,  # type: ignore[arg-type]
            conv.dilation,  # type: ignore[arg-type]
            conv.groups,
            conv.bias is not None,
            num_experts=1,
            precision=Precision.REAL,
        )
        layer.load_state_dict(conv.state_dict(), strict=False)  # the scale, which a convolution lacks, stays at 1
        setattr(parent, name, layer)
        swapped.append(layer)
    return swapped


def somebody_elses_model() -> nn.Module:
    """Stands for any model: batch norm before each convolution serves binary layers best."""

    def block(cin: int, cout: int) -> nn.Sequential:
        return nn.Sequential(nn.BatchNorm2d(cin), nn.Conv2d(cin, cout, 3, 2, 1, bias=False), nn.PReLU(cout))

    body = [nn.Conv2d(1, 16, 3, 2, 1), block(16, 32), block(32, 64)]
    return nn.Sequential(*body, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(256, 10))


def main() -> dict[str, float]:
    torch.manual_seed(0)
    digits = Data()
    model = somebody_elses_model()
    accuracy = {"real": digits.train(model)}

    layers = swap_convolutions(model)
    set_precision(model, Precision.BINARY_INPUT)
    accuracy["stage I"] = digits.train(model)

    for layer in layers:
        layer.replicate(EXPERTS)
    accuracy[f"stage I, {EXPERTS} experts"] = digits.train(model)

    set_precision(model, Precision.BINARY)
    accuracy["stage II"] = digits.train(model)
    for stage, top1 in accuracy.items():
        print(f"{stage:20} {top1:.1%}")
    return accuracy


class Data:
    """MNIST-5k, and the shortest training loop."""

    def __init__(self) -> None:
        train, val = open_dataset("mnist5k"), open_dataset("mnist5k", split="val")
        self.normalise = Normalise(train.statistics.mean, train.statistics.std)
        self.train_loader = Loader(train, PadCrop(28, padding=2, flip=False), 64, shuffle=True)
        self.val_loader = Loader(val, PadCrop(28, padding=0, flip=False), 500)

    def train(self, model: nn.Module) -> float:
        """A few steps of Adam; the accuracy after them."""
        model.train()
        optimizer = torch.optim.Adam(model.parameters(), 3e-3)
        for (images, labels), _ in zip(self.train_loader.epoch(0), range(STEPS), strict=False):
            loss = F.cross_entropy(model(self.normalise.tensor(images)), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return self.accuracy(model.eval())

    @torch.no_grad()
    def accuracy(self, model: nn.Module) -> float:
        right: list[Tensor] = [model(self.normalise.tensor(x)).argmax(1) == y for x, y in self.val_loader.epoch(0)]
        return torch.cat(right).float().mean().item()


if __name__ == "__main__":
    main()
