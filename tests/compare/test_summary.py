"""What is said beside the standings: experts on top of the best, and who is missing."""

from dataclasses import replace
from pathlib import Path

import pytest

from ebnet.compare.standings import standings
from ebnet.compare.summary import summary, with_experts_of
from ebnet.errors import ConfigError
from tests.compare.small import contest, written


def told(notes: list[str]) -> str:
    return "\n".join(notes)


def test_experts_on_top_of_the_best_are_told_where_they_have_records(tmp_path: Path) -> None:
    one = contest(tmp_path, "bnn", "bi-real")
    written(one, {"bnn": [0.5, 0.4], "bi-real": [0.6, 0.5]})
    assert "Experts" not in told(summary(one)["notes"])
    written(contest(tmp_path, "bi-real+4"), {"bi-real+4": [0.62, 0.53]})
    said = told(summary(one)["notes"])
    # +2 and +3 points: mean 2.5, deviation 0.707 over root 2.
    assert "`bi-real+4` reaches 57.50 ± 4.50 %, +2.50 ± 0.50 points against `bi-real` over the same 2 seeds." in said
    assert [row["method"] for row in summary(one)["standings"]] == ["bi-real", "bnn"]


def test_experts_on_top_keep_the_network_and_its_first_stage(tmp_path: Path) -> None:
    """Within the budget the gates' operations may cost a channel."""
    one = replace(contest(tmp_path, "sbaseline", "sbaseline+4", "sbaseline:4", seeds=1), overrides=())
    widths = {str(who): one.network(who).settings.get("stem_width") for who in one.contestants}
    assert widths == {"sbaseline": 16, "sbaseline+4": 16, "sbaseline:4": 15}
    alone, on_top = (one.network(who).counted for who in one.contestants[:2])
    assert on_top.bops == alone.bops
    assert alone.ops < on_top.ops < 1.01 * alone.ops
    assert len(replace(one, methods=("sbaseline", "sbaseline+4")).links()) == 3


def test_only_seeds_of_both_count_for_the_experts(tmp_path: Path) -> None:
    one = contest(tmp_path, "bi-real")
    written(one, {"bi-real": [0.6, 0.5]})
    written(contest(tmp_path, "bi-real+4", seeds=1), {"bi-real+4": [0.62]})
    assert "+2.00 points against `bi-real` over the same 1 seed." in told(summary(one)["notes"])


def test_experts_go_to_the_best_that_can_have_them(tmp_path: Path) -> None:
    """Bop takes one expert; of two bits, a network is not binary."""
    one = contest(tmp_path, "rethinking-bnn", "hwgq", "bnn", seeds=1)
    assert with_experts_of(standings(one)) is None
    written(one, {"rethinking-bnn": [0.7], "hwgq": [0.8], "bnn": [0.5]})
    assert str(with_experts_of(standings(one))) == "bnn+4"
    with pytest.raises(ConfigError, match=r"'rethinking-bnn:2': rethinking-bnn trains plain signs with Bop"):
        _ = contest(tmp_path, "rethinking-bnn:2").contestants
