"""The paper's notation for networks, ``N0N1N2N3-E-G0:G1:G2:G3`` (appendix, "Network architecture naming convention").

Stage i has N_i blocks of width 64 * 2^i * E whose 3x3 convolutions have G_i groups. Two extensions: block counts may be
separated by dots (``1.2.12.2-2-4:8:8:16``, needed above 9), and E may be a decimal (narrow networks) or given per stage
(``1262-2:2:2:1-4:8:8:16``).
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn, Self

from ebnet.errors import ArchError

STAGES = 4
STEM_WIDTH = 64
"""Channels the stem gives, whatever the expansion."""

_EXAMPLE = "a network is named like 1262-2-4:8:8:16 (blocks-expansion-groups)"


@dataclass(frozen=True)
class Arch:
    """A network's shape: blocks, expansion and groups of each of the four stages.

    >>> arch = Arch.parse("1262-2-4:8:8:16")
    >>> arch.widths
    (128, 256, 512, 1024)
    >>> str(arch)
    '1262-2-4:8:8:16'
    """

    blocks: tuple[int, ...]
    expansion: tuple[Fraction, ...]
    groups: tuple[int, ...]

    def __post_init__(self) -> None:
        for name in ("blocks", "expansion", "groups"):
            values = getattr(self, name)
            if len(values) != STAGES:
                raise ArchError(f"{name}={tuple(values)}: expected {STAGES} values, one per stage")
        object.__setattr__(self, "blocks", tuple(int(n) for n in self.blocks))
        object.__setattr__(self, "expansion", tuple(Fraction(e) for e in self.expansion))
        object.__setattr__(self, "groups", tuple(int(g) for g in self.groups))
        fault = self._fault()
        if fault:
            raise ArchError(f"{self._text()}: {fault[1]}")

    @classmethod
    def parse(cls, text: "str | Arch") -> Self:
        """Read the notation; an error repeats the text and marks the fault."""
        if isinstance(text, cls):
            return text
        if not isinstance(text, str):
            raise ArchError(f"{text!r} is not a network name; {_EXAMPLE}")
        return _Parser(text).arch(cls)

    @property
    def widths(self) -> tuple[int, ...]:
        """Output channels of each stage."""
        return tuple(int(STEM_WIDTH * 2**i * e) for i, e in enumerate(self.expansion))

    @property
    def inputs(self) -> tuple[int, ...]:
        """Input channels of each stage's first block."""
        return (STEM_WIDTH, *self.widths[:-1])

    def __str__(self) -> str:
        return self._text()

    def _text(self) -> str:
        separator = "." if max(self.blocks) > 9 else ""
        expansion = self.expansion[:1] if len(set(self.expansion)) == 1 else self.expansion
        return "-".join(
            (
                separator.join(map(str, self.blocks)),
                ":".join(_decimal(e) for e in expansion),
                ":".join(map(str, self.groups)),
            )
        )

    def _fault(self) -> tuple[tuple[str, int], str] | None:
        """The first thing wrong, as ((field, stage), sentence)."""
        for stage in range(STAGES):
            if self.blocks[stage] < 1:
                return ("blocks", stage), f"stage {stage} has {self.blocks[stage]} blocks; every stage needs at least 1"
            if self.expansion[stage] <= 0:
                return ("expansion", stage), f"the expansion of stage {stage} must be positive"
            if self.groups[stage] < 1:
                return ("groups", stage), f"stage {stage} has {self.groups[stage]} groups; every stage needs at least 1"
            width = STEM_WIDTH * 2**stage * self.expansion[stage]
            if width.denominator != 1:
                return ("expansion", stage), f"stage {stage} would have {float(width):g} channels, not a whole number"
        for stage, (cin, cout, groups) in enumerate(zip(self.inputs, self.widths, self.groups, strict=True)):
            for role, channels in (("input", cin), ("output", cout)):
                if channels % groups:
                    sentence = f"{groups} groups do not divide the {channels} {role} channels of stage {stage}"
                    return ("groups", stage), sentence
        return None


def _decimal(value: Fraction) -> str:
    """A fraction as the shortest exact decimal (widths are whole, so the denominator is a power of two)."""
    places = max(value.denominator.bit_length() - 1, 0)
    text = f"{float(value):.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


class _Parser:
    """One pass over the text that remembers where each number stands, so that a fault can be pointed at."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.spans: dict[tuple[str, int], tuple[int, int]] = {}

    def arch[A: Arch](self, kind: type[A]) -> A: ...

    def fail(self, span: tuple[int, int], why: str) -> NoReturn:
        start, end = span
        marker = " " * start + "^" * max(end - start, 1)
        raise ArchError(f"{why}\n  {self.text}\n  {marker}\n{_EXAMPLE}")
