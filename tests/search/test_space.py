"""Candidates, and the moves along each direction."""

from fractions import Fraction

import pytest

from ebnet.arch import Arch
from ebnet.cost import profile
from ebnet.errors import ConfigError
from ebnet.models.config import NetworkConfig
from ebnet.models.genotype import CellArch
from ebnet.search.candidate import Candidate
from ebnet.search.space import DIRECTIONS, Move, Space

RESNET18 = Candidate.parse("2222-1-1:1:1:1")


def targets(space: Space, origin: Candidate, direction) -> dict[str, Candidate]:
    found = [move.apply(origin) for move in space.moves(origin, direction)]
    return {str(candidate.arch): candidate for candidate in found if candidate is not None}


@pytest.mark.parametrize("key", ["1262-2-4:8:8:16 +1x1 x4", "2222-2-4:4:4:4 -1x1 x1", "1.2.12.2-0.25-1:1:1:1 +1x1 x8"])
def test_a_key_is_as_good_as_the_candidate(key):
    assert Candidate.parse(key).key == key


def test_the_same_network_is_the_same_candidate():
    without_groups = Arch.parse("2222-1-1:1:1:1")
    assert Candidate(without_groups, aggregation=False) == Candidate(without_groups, aggregation=True)
    grouped = Arch.parse("2222-2-4:4:4:4")
    assert Candidate(grouped, aggregation=False) != Candidate(grouped, aggregation=True)


def test_arrangements_keep_the_number_of_blocks_and_have_the_papers():
    found = targets(Space.around(RESNET18), RESNET18, "arrangement")
    assert {"1133-1-1:1:1:1", "1142-1-1:1:1:1", "1124-1-1:1:1:1"} <= set(found)
    assert {sum(candidate.arch.blocks) for candidate in found.values()} == {8}
    assert len({profile(candidate.arch).bops for candidate in found.values()}) == 1


def test_depth_changes_blocks_only_and_has_the_papers():
    origin = Candidate.parse("1242-2-4:4:8:16")
    found = targets(Space.around(origin), origin, "depth")
    assert {"1262-2-4:4:8:16", "1282-2-4:4:8:16", "1284-2-4:4:8:16"} <= set(found)
    assert {(c.arch.expansion, c.arch.groups) for c in found.values()} == {(origin.arch.expansion, origin.arch.groups)}
    assert all(sum(c.arch.blocks) != sum(origin.arch.blocks) for c in found.values())


def test_width_expands_with_and_without_groups_of_k_squared():
    found = targets(Space.around(RESNET18), RESNET18, "width")
    assert {"2222-2-1:1:1:1", "2222-2-4:4:4:4", "2222-1:1:1:2-1:1:1:1", "2222-1:1:1:2-1:1:1:4"} <= set(found)
    plain = profile(RESNET18.arch).bops
    wide = Candidate(found["2222-2-4:4:4:4"].arch, aggregation=False)
    assert profile(wide.config(profile("2222-1-1:1:1:1").config)).bops == pytest.approx(plain, rel=0.05)


def test_groups_never_fall_and_have_the_papers():
    origin = Candidate.parse("1242-2-4:4:8:16")
    found = targets(Space.around(origin), origin, "groups")
    assert {"1242-2-4:8:16:32", "1242-2-4:4:16:16", "1242-2-4:8:8:16"} <= set(found)
    assert all(list(c.arch.groups) == sorted(c.arch.groups) for c in found.values())


def test_aggregation_and_experts():
    grouped = Candidate.parse("1242-2-4:4:8:16")
    space = Space.around(grouped)
    assert [m.apply(grouped) for m in space.moves(grouped, "aggregation")] == [Candidate(grouped.arch, False, 1)]
    assert [m.apply(grouped).experts for m in space.moves(grouped, "experts")] == [4, 8]
    assert space.moves(RESNET18, "aggregation") == []


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_moves_stay_in_the_space_and_never_repeat(direction):
    origin = Candidate.parse("1221-0.5-1:2:2:4")
    space = Space.around(origin, max_blocks=3, groups=(1, 2, 4))
    found = [move.apply(origin) for move in space.moves(origin, direction)]
    assert all(candidate is not None and space.allows(candidate) for candidate in found)
    assert len(set(found)) == len(found)
    assert origin not in found


def test_moves_of_different_directions_combine():
    deeper, wider = (
        Move("depth", blocks=(0, 0, 2, 0)),
        Move("width", expansion=(Fraction(2),) * 4, groups=(Fraction(4),) * 4),
    )
    one_way = wider.apply(deeper.apply(RESNET18))
    other_way = deeper.apply(wider.apply(RESNET18))
    assert one_way == other_way == Candidate.parse("2242-2-4:4:4:4")


def test_a_move_to_nowhere_is_none():
    assert Move("depth", blocks=(-2, 0, 0, 0)).apply(RESNET18) is None
    assert Move("groups", groups=(Fraction(1, 2),) * 4).apply(RESNET18) is None
    assert Move("groups", groups=(Fraction(3),) * 4).apply(RESNET18) is None


def test_a_space_survives_json_and_refuses_nonsense():
    space = Space.around(RESNET18, expansions=(Fraction(1, 4), Fraction(1)))
    assert Space.from_dict(space.to_dict()) == space
    with pytest.raises(ConfigError, match="groups"):
        Space(groups=(0, 1))
    with pytest.raises(ConfigError, match="max_blocks"):
        Space(max_blocks=0)


def test_cells_are_not_searched() -> None:
    with pytest.raises(
        ConfigError, match="bnas-15x68: a search changes blocks, expansion and groups, which cells have"
    ):
        Candidate.of(NetworkConfig(CellArch("bnas", 15, 68)))
