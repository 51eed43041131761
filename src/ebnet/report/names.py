"""Names of layers for people: modules are called `stages.2.1.units.0.conv`, ops of a packed file `stages.2.1.0`."""

import re

_PLACE = r"^stages\.(\d+)\.(\d+)\.(?:units\.)?(\d+)"


def layer_title(name: str) -> str:
    """A binary layer in words: stage 2, block 1, conv 0."""
    return re.sub(_PLACE + r"(?:\.conv)?$", r"stage \1, block \2, conv \3", name)


def layer_code(name: str) -> str:
    """Any layer, short enough for an axis: `2.1.0 shortcut.conv1`."""
    return re.sub(_PLACE + r"\.?", r"\1.\2.\3 ", name).strip()
