"""ImageNet's 1000 classes, in the order of every network's outputs: the sorted names of their WordNet synsets."""

from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from ebnet.errors import DataError


@cache
def synsets() -> tuple[str, ...]:
    """n01440764 (tench) to n15075141 (toilet tissue)."""
    return tuple((files("ebnet.data") / "imagenet-synsets.txt").read_text(encoding="ascii").split())


def imagenet_columns(classes: Sequence[str], name: str) -> list[int]:
    """Which of ImageNet's 1000 outputs speak of these classes.

    Sets whose class folders are named by synsets are understood: ImageNet itself, Imagenette, tiny100 and other parts
    of it. CIFAR, digits and clothes have classes of their own, of which some have no match.
    """
    place = {synset: column for column, synset in enumerate(synsets())}
    unknown = [label for label in classes if label not in place]
    if unknown:
        raise DataError(
            f"{name}: its class {unknown[0]!r} is not one of ImageNet's, so a network trained on ImageNet cannot teach "
            "it. Only sets whose class folders are named by synsets, such as n01440764, can be matched: ImageNet, "
            "Imagenette, tiny100"
        )
    return [place[label] for label in classes]
