from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebnet.arch import Arch
from ebnet.errors import ArchError, EbnetError


def test_the_papers_network() -> None:
    arch = Arch.parse("1262-2-4:8:8:16")
    assert arch.blocks == (1, 2, 6, 2)
    assert arch.widths == (128, 256, 512, 1024)
    assert arch.groups == (4, 8, 8, 16)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("1262-2-4:8:8:16", "1262-2-4:8:8:16"),
        ("1.2.6.2-2-4:8:8:16", "1262-2-4:8:8:16"),
        ("1.2.12.2-2-4:8:8:16", "1.2.12.2-2-4:8:8:16"),
        ("1262-2:2:2:2-4:8:8:16", "1262-2-4:8:8:16"),
        ("1262-2:2:2:1-4:8:8:16", "1262-2:2:2:1-4:8:8:16"),
        ("1221-0.25-1:2:2:4", "1221-0.25-1:2:2:4"),
        ("1221-0.250-1:2:2:4", "1221-0.25-1:2:2:4"),
        ("2222-10-1:1:1:1", "2222-10-1:1:1:1"),
    ],
)
def test_prints_the_shortest_form(text: str, printed: str) -> None:
    assert str(Arch.parse(text)) == printed


def test_equal_networks_compare_equal() -> None:
    assert Arch.parse("1.2.6.2-2.0-4:8:8:16") == Arch.parse("1262-2-4:8:8:16")
    assert hash(Arch.parse("1.2.6.2-2.0-4:8:8:16")) == hash(Arch.parse("1262-2-4:8:8:16"))
    assert Arch.parse("1262-2-4:8:8:16") != Arch.parse("1262-2-4:8:8:8")


stages = st.integers(0, 3)
expansions = st.sampled_from([Fraction(n, 8) for n in (1, 2, 3, 4, 8, 12, 16, 32)])


@given(
    st.tuples(*[st.integers(1, 30)] * 4),
    st.tuples(*[expansions] * 4),
    st.tuples(*[st.sampled_from([1, 2, 4, 8])] * 4),
)
def test_round_trip(blocks: tuple[int, ...], expansion: tuple[Fraction, ...], groups: tuple[int, ...]) -> None:
    arch = Arch(blocks, expansion, groups)
    assert Arch.parse(str(arch)) == arch
    assert arch.widths == tuple(int(64 * 2**i * e) for i, e in enumerate(expansion))


@pytest.mark.parametrize(
    ("text", "marked", "why"),
    [
        ("", "", "3 parts"),
        ("126", "126", "expected 4 block counts, found 3"),
        ("1262-", "1262-", "3 parts"),
        ("1262-2-4:8:8:16-", "1262-2-4:8:8:16-", "3 parts"),
        ("1262-2--4:8:8:16", "1262-2--4:8:8:16", "3 parts"),
        ("126-2-4:8:8:16", "126", "4 block counts"),
        ("12622-2-4:8:8:16", "12622", "4 block counts"),
        ("1.2.12-2-4:8:8:16", "1.2.12", "4 block counts"),
        ("1062-2-4:8:8:16", "0", "stage 1 has 0 blocks"),
        ("12a2-2-4:8:8:16", "a", "not a number"),
        ("1262-0-4:8:8:16", "0", "must be positive"),
        ("1262-2:2-4:8:8:16", "2:2", "4 expansions"),
        ("1262-x-4:8:8:16", "x", "not a number"),
        ("1262-0.01-1:1:1:1", "0.01", "0.64 channels"),
        ("1262-2:2:2:0.001-1:1:1:1", "0.001", "not a whole number"),
        ("1262-2-4:8:8", "4:8:8", "4 groups"),
        ("1262-2-4:8:8:0", "0", "stage 3 has 0 groups"),
        ("1262-2-3:8:8:16", "3", "3 groups do not divide the 64 input channels of stage 0"),
        ("1111-0.25-32:1:1:1", "32", "32 groups do not divide the 16 output channels of stage 0"),
        ("1262-2-4:8:8:-16", "1262-2-4:8:8:-16", "3 parts"),
        ("1262-2-4:8:8:16000000000000", "16000000000000", "more than 12 characters"),
        ("\u0661262-2-4:8:8:16", "\u0661", "not a number"),
    ],
)
def test_a_fault_is_repeated_and_pointed_at(text: str, marked: str, why: str) -> None:
    with pytest.raises(ArchError) as caught:
        Arch.parse(text)
    sentence, repeated, marker, _ = str(caught.value).split("\n")
    assert why in sentence
    assert repeated == f"  {text}"
    start = marker.index("^") - 2
    assert text[start : start + marker.count("^")] == marked


def test_other_types_and_values_are_refused() -> None:
    with pytest.raises(ArchError, match="1262 is not a network name"):
        Arch.parse(1262)  # type: ignore[arg-type]
    with pytest.raises(ArchError, match="expected 4 values"):
        Arch((1, 1), (Fraction(1),) * 4, (1,) * 4)
    with pytest.raises(EbnetError, match="7 groups"):
        Arch((1,) * 4, (Fraction(1),) * 4, (7,) * 4)


@given(st.text(max_size=30))
def test_any_text_parses_or_raises_our_error(text: str) -> None:
    try:
        arch = Arch.parse(text)
    except ArchError as error:
        assert text in str(error)  # noqa: PT017 -- most texts raise, some may not
    else:
        assert Arch.parse(str(arch)) == arch


@pytest.mark.parametrize(("short", "whole"), [("1133", "1133-1-1:1:1:1"), ("1111-0.25", "1111-0.25-1:1:1:1")])
def test_what_is_one_may_be_left_out(short: str, whole: str) -> None:
    """As in the paper's table of block arrangements."""
    assert str(Arch.parse(short)) == whole
