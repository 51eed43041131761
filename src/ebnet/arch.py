"""The paper's notation for networks, ``N0N1N2N3-E-G0:G1:G2:G3`` (appendix, "Network architecture naming convention").

Stage i has N_i blocks of width 64 * 2^i * E whose 3x3 convolutions have G_i groups. Two extensions: block counts may be
separated by dots (``1.2.12.2-2-4:8:8:16``, needed above 9), and E may be a decimal (narrow networks) or given per stage
(``1262-2:2:2:1-4:8:8:16``).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, NoReturn, Self

from ebnet.errors import ArchError

STAGES = 4
STEM_WIDTH = 64
"""Channels the stem gives, whatever the expansion."""

SCALING_REDUCTION = 8
"""Data-driven scaling squeezes to out / 8 channels, as in the released networks."""

LONGEST_NUMBER = 12
"""Characters of one number; longer ones are no network."""

_EXAMPLE = "a network is named like 1262-2-4:8:8:16 (blocks-expansion-groups)"


@dataclass(frozen=True)
class Arch:
    """A network's shape: blocks, expansion and groups of each of the four stages.

    Examples:
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
        fault = _fault(self.blocks, self.expansion, self.groups)
        if fault:
            raise ArchError(f"{self}: {fault.why}")

    @classmethod
    def parse(cls, text: "str | Arch") -> Self:
        """Read the notation; an error repeats the text and marks the fault."""
        if isinstance(text, cls):
            return text
        if not isinstance(text, str):
            raise ArchError(f"{text!r} is not a network name; {_EXAMPLE}")
        parser = _Parser(text)
        blocks, expansion, groups = parser.fields()
        fault = _fault(blocks, expansion, groups)
        if fault:
            parser.fail(parser.spans[fault.field, fault.stage], fault.why)
        return cls(tuple(blocks), tuple(expansion), tuple(groups))

    @property
    def widths(self) -> tuple[int, ...]:
        """Output channels of each stage."""
        return tuple(int(STEM_WIDTH * 2**i * e) for i, e in enumerate(self.expansion))

    def __str__(self) -> str:
        separator = "." if max(self.blocks) > 9 else ""
        expansion = self.expansion[:1] if len(set(self.expansion)) == 1 else self.expansion
        return "-".join(
            (
                separator.join(map(str, self.blocks)),
                ":".join(_decimal(e) for e in expansion),
                ":".join(map(str, self.groups)),
            )
        )


def _completed(text: str) -> str:
    """The whole name: the paper's tables leave out an expansion of 1 and groups of 1 (`1133`)."""
    short = re.fullmatch(r"(?P<blocks>[\d.]+)(-(?P<expansion>[\d.:]+))?", text, re.ASCII)
    return f"{short['blocks']}-{short['expansion'] or 1}-1:1:1:1" if short else text


class _Fault(NamedTuple):
    """What is wrong, and with which number."""

    field: str
    stage: int
    why: str


def _fault(blocks: Sequence[int], expansion: Sequence[Fraction], groups: Sequence[int]) -> _Fault | None:
    """The first reason why no network has these numbers."""
    cin = STEM_WIDTH
    for stage in range(STAGES):
        if blocks[stage] < 1:
            return _Fault("blocks", stage, f"stage {stage} has {blocks[stage]} blocks; every stage needs at least 1")
        if expansion[stage] <= 0:
            return _Fault("expansion", stage, f"the expansion of stage {stage} must be positive")
        if groups[stage] < 1:
            return _Fault("groups", stage, f"stage {stage} has {groups[stage]} groups; every stage needs at least 1")
        width = STEM_WIDTH * 2**stage * expansion[stage]
        if width.denominator != 1:
            return _Fault("expansion", stage, f"stage {stage} would have {float(width):g} channels, not a whole number")
        cout = int(width)
        for role, channels in (("input", cin), ("output", cout)):
            if channels % groups[stage]:
                why = f"{groups[stage]} groups do not divide the {channels} {role} channels of stage {stage}"
                return _Fault("groups", stage, why)
        cin = cout
    return None


def _decimal(value: Fraction) -> str:
    """A fraction as the shortest exact decimal (widths are whole, so the denominator is a power of two)."""
    places = max(value.denominator.bit_length() - 1, 0)
    text = f"{float(value):.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


class _Parser:
    """One pass over the text that remembers where each number stands, so that a fault can be pointed at."""

    def __init__(self, text: str) -> None:
        self.given, self.text = text, _completed(text)
        self.spans: dict[tuple[str, int], tuple[int, int]] = {}

    def fields(self) -> tuple[list[int], list[Fraction], list[int]]:
        parts = list(re.finditer(r"[^-]+", self.text))
        found = self.text.count("-") + 1
        if found != 3 or len(parts) != 3:
            self.fail((0, len(self.text)), f"expected 3 parts joined by '-', found {found}")
        blocks, expansion, groups = parts
        digit = r"[^.]+" if "." in blocks.group() else r"."
        counts = [int(self.number("blocks", *item, r"\d+")) for item in self.items(blocks, digit)]
        widths = [Fraction(self.number("expansion", *item, r"\d+(\.\d+)?")) for item in self.items(expansion, r"[^:]+")]
        split = [int(self.number("groups", *item, r"\d+")) for item in self.items(groups, r"[^:]+")]
        self.count("block counts", blocks, counts)
        if len(widths) == 1:
            widths *= STAGES
            self.spans |= {("expansion", stage): expansion.span() for stage in range(STAGES)}
        self.count("expansions (or 1 for all stages)", expansion, widths)
        self.count("groups", groups, split)
        return counts, widths, split

    def items(self, part: re.Match[str], pattern: str) -> list[tuple[int, int, int]]:
        found = re.finditer(pattern, part.group())
        return [(stage, part.start() + m.start(), part.start() + m.end()) for stage, m in enumerate(found)]

    def number(self, field: str, stage: int, start: int, end: int, pattern: str) -> str:
        self.spans[field, stage] = (start, end)
        word = self.text[start:end]
        if not (word.isascii() and re.fullmatch(pattern, word)):
            self.fail((start, end), f"{word!r} is not a number of the {field}")
        if len(word) > LONGEST_NUMBER:
            self.fail((start, end), f"a number of the {field} has more than {LONGEST_NUMBER} characters")
        return word

    def count(self, what: str, part: re.Match[str], values: Sequence[object]) -> None:
        if len(values) != STAGES:
            self.fail(part.span(), f"expected {STAGES} {what}, found {len(values)}")

    def fail(self, span: tuple[int, int], why: str) -> NoReturn:
        start, end = span
        if end > len(self.given):  # a fault in what was left out: all that was given leads to it
            start, end = 0, len(self.given)
        marker = " " * start + "^" * max(end - start, 1)
        raise ArchError(f"{why}\n  {self.given}\n  {marker}\n{_EXAMPLE}")
