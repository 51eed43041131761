"""What a layer is called, everywhere: `3.0.1` is the convolution of stage 3, block 0, unit 1, counted from 0.

The real convolutions of its shortcut are `3.0.1.shortcut.conv1` and `conv2`; stem, head and classifier go by their own
names. Layers of a block's further branches are `3.0.1b1` and so on, those of an ensemble's further members
`member1.3.0.1`. Files of earlier versions call the same layer `stages.3.0.1` (packed files, benches) or
`stages.3.0.units.1.conv` (metrics, states, records): they are read by `todays_name`.
"""

import re
from collections.abc import Mapping
from typing import TypeVar

_EARLIER = re.compile(r"^stages\.(\d+)\.(\d+)\.(?:units\.)?(\d+)(?:\.conv)?(?=\.|$)")

Value = TypeVar("Value")


def member_prefix(member: int) -> str:
    """What the names of an ensemble's member begin with: nothing for the first, `member1.` for the second."""
    return f"member{member}." if member else ""


def layer_name(stage: int, block: int, unit: int, branch: int = 0) -> str:
    return f"{stage}.{block}.{unit}" + (f"b{branch}" if branch else "")


def todays_name(written: str) -> str:
    """The name of the layer, or of a tensor of it, that a file calls `written`."""
    return _EARLIER.sub(r"\1.\2.\3", written)


def by_todays_name(written: Mapping[str, Value]) -> dict[str, Value]:
    """The same values under the names of today."""
    return {todays_name(name): value for name, value in written.items()}


def spoken(name: str) -> str:
    """For a page or a sentence: `layer 3.0.1`, but `stem.conv1` as it is."""
    return f"layer {name}" if name[:1].isdigit() else name
