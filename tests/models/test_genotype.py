"""Networks of cells by name, and the cells themselves."""

import pytest

from ebnet.arch import Arch
from ebnet.errors import ArchError
from ebnet.models.genotype import GENOTYPES, CellArch, parse_arch


def test_a_name_is_read_and_printed() -> None:
    arch = CellArch.parse("bnas-15x68")
    assert (arch.genotype, arch.cells, arch.channels) == ("bnas", 15, 68)
    assert str(arch) == "bnas-15x68"
    assert parse_arch("bnas-15x68") == parse_arch(arch) == arch
    assert parse_arch("1262-2-4:8:8:16") == Arch.parse("1262-2-4:8:8:16")


@pytest.mark.parametrize(
    ("cells", "blocks"), [(3, (1, 1, 1)), (4, (1, 1, 2)), (11, (3, 4, 4)), (15, (5, 5, 5)), (16, (5, 5, 6))]
)
def test_reductions_stand_at_a_third_and_two_thirds(cells: int, blocks: tuple[int, ...]) -> None:
    arch = CellArch("bnas", cells, 8)
    assert arch.blocks == blocks
    assert (arch.blocks[0], sum(arch.blocks[:2])) == (cells // 3, 2 * cells // 3)
    assert arch.widths == (32, 64, 128)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("bnas-15", "'bnas-15' is no network of cells; those are named like bnas-15x68"),
        ("bnas-1x5x68", "is no network of cells"),
        ("bnas-15x" + "9" * 20, "is no network of cells"),
        ("bnas-2x68", "2 cells; each of 3 stages needs at least one"),
        ("bnas-15x0", "a node needs at least 1 channel"),
        ("darts-15x68", "expected 3 parts joined by '-'"),
    ],
)
def test_a_wrong_name_is_told(name: str, why: str) -> None:
    with pytest.raises(ArchError, match=why):
        parse_arch(name)
    with pytest.raises(ArchError, match="no cells are called 'nas'; known are bnas"):
        CellArch("nas", 15, 68)


@pytest.mark.parametrize("name", GENOTYPES)
def test_every_node_reads_earlier_states_and_every_state_is_read(name: str) -> None:
    genotype = GENOTYPES[name]
    assert len(genotype.normal) == len(genotype.reduction)
    for nodes in (genotype.normal, genotype.reduction):
        for number, edges in enumerate(nodes):
            assert all(0 <= source < number + 2 for _, source in edges)
            # Which a pool's stride, that of the cell, relies on.
            assert all(source < 2 for operation, source in edges if operation == "maxpool3x3")
        assert {0, 1} <= {source for edges in nodes for _, source in edges}
