"""How many validation images the teacher from outside recognises, among the classes of a set.

    python benchmarks/outside_teacher.py DIRECTORY [--side 224] [--images 3925]

DIRECTORY has val/SYNSET/*.jpg, such as Imagenette's. The images are spread evenly over the set.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from cpu import cpu_name
from ebnet.data import ArrayDataset, CentreCrop, Loader, open_dataset
from ebnet.train.outside_teacher import outside_logits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data")
    parser.add_argument("--side", type=int, default=224)
    parser.add_argument("--images", type=int, default=10_000)
    arguments = parser.parse_args()
    whole = open_dataset("folder", arguments.data, "val")
    chosen = np.linspace(0, len(whole) - 1, min(arguments.images, len(whole))).round().astype(np.int64)
    images, labels = Loader(whole, CentreCrop(arguments.side), 1).some(chosen)
    data = ArrayDataset("folder", "val", images, labels, whole.classes, whole.statistics)
    start = time.process_time()
    with tempfile.TemporaryDirectory() as kept:
        logits = outside_logits("efficientnet-lite0", arguments.side, data, Path(kept) / "logits", torch.device("cpu"))
    seconds = time.process_time() - start
    right = (logits.argmax(1).numpy() == labels).mean()
    print(
        f"efficientnet-lite0 at {arguments.side} px recognises {right:.2%} of {len(labels)} images of "
        f"{data.num_classes} classes; {len(labels) / seconds:.0f} images per second of processor time, {cpu_name()}"
    )


if __name__ == "__main__":
    main()
