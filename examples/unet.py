"""The expert binary convolution in a network the paper never saw: a small U-Net that finds strokes in noise.

    python examples/unet.py

Each binary unit is the paper's: batch norm, expert binary convolution, PReLU, and a skip around it. First and last
convolution stay real.
"""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ebnet.data import open_dataset
from ebnet.nn import ExpertBinaryConv2d, Precision, set_precision

STEPS = 40
EXPERTS = 2


class Unit(nn.Module):
    """y = PReLU(EBConv(BN(x))) + skip(x), the skip a real 1x1 convolution where the width changes."""

    def __init__(self, cin: int, cout: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(cin)
        self.conv = ExpertBinaryConv2d(cin, cout, 3, padding=1, num_experts=EXPERTS)
        self.act = nn.PReLU(cout)
        self.skip = nn.Identity() if cin == cout else nn.Conv2d(cin, cout, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.act(self.conv(self.norm(x))) + self.skip(x)


class UNet(nn.Module):
    """Two levels down, two levels up."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, width, 3, padding=1)
        self.down1, self.down2 = Unit(width, 2 * width), Unit(2 * width, 4 * width)
        self.up1, self.up2 = Unit(6 * width, 2 * width), Unit(3 * width, width)
        self.last = nn.Conv2d(width, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        level0 = self.first(x)
        level1 = self.down1(F.avg_pool2d(level0, 2))
        level2 = self.down2(F.avg_pool2d(level1, 2))
        level1 = self.up1(torch.cat([F.interpolate(level2, scale_factor=2.0), level1], 1))
        return self.last(self.up2(torch.cat([F.interpolate(level1, scale_factor=2.0), level0], 1)))


def noisy_digits(split: str) -> tuple[Tensor, Tensor]:
    """Digits under noise, and where their strokes are: [count, 1, 28, 28] each."""
    dataset = open_dataset("mnist5k", split=split)  # type: ignore[arg-type]
    clean = torch.from_numpy(np.stack([dataset.image(i) for i in range(0, len(dataset), 4)]))
    strokes = clean.permute(0, 3, 1, 2).float() / 255
    noise = torch.randn(strokes.shape, generator=torch.Generator().manual_seed(0))
    return strokes + 0.7 * noise, (strokes > 0.5).float()


def overlap(logits: Tensor, strokes: Tensor) -> float:
    """Intersection over union."""
    found = logits > 0
    both, either = (found & (strokes > 0)).sum(), (found | (strokes > 0)).sum()
    return (both / either).item()


def main() -> dict[str, float]:
    torch.manual_seed(0)
    images, strokes = noisy_digits("train")
    test_images, test_strokes = noisy_digits("val")
    model, found = UNet(), {"before training": 0.0}
    found["before training"] = overlap(model.eval()(test_images), test_strokes)
    for stage, precision in (("stage I", Precision.BINARY_INPUT), ("stage II", Precision.BINARY)):
        set_precision(model.train(), precision)
        optimizer = torch.optim.Adam(model.parameters(), 5e-3)
        for step in range(STEPS):
            chosen = torch.arange(32 * step, 32 * (step + 1)) % len(images)
            loss = F.binary_cross_entropy_with_logits(model(images[chosen]), strokes[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            found[stage] = overlap(model.eval()(test_images), test_strokes)
    for name, value in found.items():
        print(f"{name:16} intersection over union {value:.2f}")
    return found


if __name__ == "__main__":
    main()
