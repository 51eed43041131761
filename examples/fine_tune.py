"""Fine-tune a finished network for another task, and pack the result.

    python examples/fine_tune.py demo/run/final odd-or-even.ebn

Takes a Stage II network that reads digits and teaches it to tell odd from even: a new classifier, then a few steps in
which everything learns. The weights stay binary throughout; what moves is their latent real value.
"""

import sys
from dataclasses import replace
from pathlib import Path

import torch
from torch.nn import functional as F

import ebnet
from ebnet.data import Loader, Normalise, PadCrop, open_dataset

STEPS = 30
LABELS = ["even", "odd"]


def with_new_classifier(network: ebnet.ExpertBinaryNetwork, num_classes: int) -> ebnet.ExpertBinaryNetwork:
    """The same network up to its classifier, which is fresh."""
    fresh = ebnet.ExpertBinaryNetwork(replace(network.config, num_classes=num_classes), network.precision)
    kept = {name: tensor for name, tensor in network.state_dict().items() if not name.startswith("classifier.")}
    fresh.load_state_dict(kept, strict=False)
    return fresh


def main(source: Path, target: Path) -> float:
    torch.manual_seed(0)
    network = with_new_classifier(ebnet.load_pretrained(source), len(LABELS))
    train, val = open_dataset("mnist5k"), open_dataset("mnist5k", split="val")
    normalise = Normalise(train.statistics.mean, train.statistics.std)
    optimizer = torch.optim.Adam(network.parameters(), 1e-3)
    network.train()
    for (images, digits), _ in zip(
        Loader(train, PadCrop(28, padding=2, flip=False), 64, shuffle=True).epoch(0), range(STEPS), strict=False
    ):
        loss = F.cross_entropy(network(normalise.tensor(images)), digits % 2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    mean, std = list(normalise.mean), list(normalise.std)
    preprocessing = {"size": 28, "resize": 28, "crop": 28, "mean": mean, "std": std, "in_channels": 1}
    ebnet.pack(network.eval(), target, preprocessing=preprocessing, labels=LABELS)
    engine = ebnet.load(target)
    right = 0
    for images, digits in Loader(val, PadCrop(28, padding=0, flip=False), 500).epoch(0):
        right += int((engine(images.numpy()).argmax(1) == digits.numpy() % 2).sum())
    print(f"{target}: {right / len(val):.1%} of {len(val)} digits told apart by the engine")
    return right / len(val)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
