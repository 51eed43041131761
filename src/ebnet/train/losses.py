"""The terms of the training loss: labels, the teacher's logits, the teacher's attention."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from ebnet.errors import ShapeError
from ebnet.train.mixup import mixed


def soft_cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Cross entropy against target probabilities [batch, classes], averaged over the batch."""
    return -(targets * F.log_softmax(logits, dim=1)).sum(1).mean()


def logit_distillation(logits: Tensor, teacher_logits: Tensor, temperature: float) -> Tensor:
    """Knowledge distillation (Hinton et al. 2015): T^2 KL(teacher || student) of the softened predictions.

    T^2 keeps the size of the gradient independent of T.
    """
    student = F.log_softmax(logits / temperature, dim=1)
    teacher = F.log_softmax(teacher_logits / temperature, dim=1)
    return temperature**2 * F.kl_div(student, teacher, reduction="batchmean", log_target=True)


def mixed_opinions(logits: Tensor, weight: float) -> Tensor:
    """A teacher's logits of single images as those of mixtures: its predictions are mixed as mixup mixes labels."""
    if weight == 1.0:
        return logits
    return mixed(logits.softmax(1), weight).log()


def attention_map(features: Tensor) -> Tensor:
    """Where a layer looks: the channel sums of squared activations, as a vector of length 1 for each picture."""
    return F.normalize(features.square().sum(1).flatten(1), dim=1)


def attention_transfer(features: Sequence[Tensor], teacher_features: Sequence[Tensor]) -> Tensor:
    """Squared l2 distance of the normalised attention maps, averaged over the batch and over the compared places.

    (Zagoruyko & Komodakis 2017; Martinez et al. 2020 after each block.) Channel counts may differ, places may not.
    """
    if len(features) != len(teacher_features):
        raise ShapeError(
            f"{len(features)} feature maps cannot be compared with the teacher's {len(teacher_features)}; "
            'teachers of another depth need attention_after = "stage"'
        )
    distances = []
    for own, theirs in zip(features, teacher_features, strict=True):
        if own.shape[2:] != theirs.shape[2:]:
            raise ShapeError(f"attention of {tuple(own.shape)} and the teacher's {tuple(theirs.shape)} differ in size")
        distances.append((attention_map(own) - attention_map(theirs)).square().sum(1).mean())
    return torch.stack(distances).mean()
