"""A convolution, and a binary one with what stands around it, as data, without torch: what blocks and cells consist of.

Sizes: every strided layer here (3x3 pad 1, 7x7 pad 3, 1x1, 2x2 of an even map, 3x3 max pool pad 1, average pool in ceil
mode) maps a side of n to ceil(n / stride), so a map's size follows from the strides alone.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class ConvLayout:
    """A convolution. `shrink` is how much smaller its output is than the network's input."""

    name: str
    cin: int
    cout: int
    kernel: int
    stride: int
    groups: int
    shrink: tuple[int, ...]
    dilation: int = 1

    @property
    def padding(self) -> int:
        """Keeps a map's size at stride 1; a window of even size has none."""
        return self.dilation * (self.kernel // 2) if self.kernel % 2 else 0

    def output(self, height: int, width: int) -> tuple[int, int]:
        """The output map's size for a network input of height x width."""
        for stride in self.shrink:
            height, width = -(-height // stride), -(-width // stride)
        return height, width

    @property
    def weights(self) -> int:
        return self.cout * (self.cin // self.groups) * self.kernel**2


@dataclass(frozen=True)
class UnitLayout:
    """A binary convolution with its batch norm and activation, and where there is one a skip.

    The skip is the identity or, with a `projection`, its real convolutions after an average pool of `stride`. It reads
    what the convolution reads, or another map that stands `beside` it: the input of its block, or a cell's other map.
    """

    conv: ConvLayout
    skips: bool
    projection: tuple[ConvLayout, ...]
    stride: int
    beside: bool = False
