"""What stages share and what they do not."""

import pytest

from ebnet.errors import ConfigError
from ebnet.recipe.settings import Recipe, load_recipe
from ebnet.reproduce.chain import chain
from ebnet.reproduce.claim import claim_names, load_claim, parse_claim


def keys(recipe: Recipe) -> list[str]:
    return [link.key for link in chain(recipe)]


def test_equal_beginnings_are_one_piece_of_work() -> None:
    four = load_recipe("evidence", {"network.experts": 4})
    eight = load_recipe("evidence", {"network.experts": 8})
    assert keys(four)[0] == keys(eight)[0]
    assert set(keys(four)[1:]).isdisjoint(keys(eight)[1:])


@pytest.mark.parametrize(
    ("changes", "shared"),
    [
        ({"seed": 1}, 0),
        ({"network.arch": "1121-0.125-1:1:1:1"}, 0),
        ({"schedule.epochs": 3}, 0),
        ({"network.gate": "sigmoid"}, 1),
        ({"network.temperature": 5.0}, 1),
        ({"stage.stage1-experts.epochs": 3}, 1),
        ({"stage.stage2.learning_rate": 1e-4}, 2),
        ({"log.log_steps": 7}, 3),
        ({"data.root": "/elsewhere"}, 3),
        ({"compute.threads": 2}, 3),
        ({"compute.channels_last": True}, 3),
        ({"compute.mixed_precision": True}, 0),
    ],
)
def test_a_setting_separates_the_stages_that_depend_on_it(changes: dict[str, object], shared: int) -> None:
    before, after = keys(load_recipe("evidence")), keys(load_recipe("evidence", changes))
    assert [a == b for a, b in zip(before, after, strict=True)] == [True] * shared + [False] * (3 - shared)


def test_outer_estimator_of_condconv_matters_in_stage_two_alone() -> None:
    cond = {"network.conv": "cond", "stages": ["stage1-experts", "stage2"]}
    clip = keys(load_recipe("evidence", cond))
    identity = keys(load_recipe("evidence", cond | {"network.cond_outer_ste": "identity"}))
    assert clip[0] == identity[0]
    assert clip[1] != identity[1]


def test_a_schedule_said_in_another_place_is_the_same_schedule() -> None:
    whole = load_recipe("evidence", {"schedule.epochs": 5, "schedule.milestones": []})
    by_stage = {f"stage.{stage}.{key}": value for stage in whole.stages for key, value in SHORT.items()}
    assert keys(whole) == keys(load_recipe("evidence", by_stage))


SHORT = {"epochs": 5, "milestones": []}


def test_every_claim_is_valid_and_found_by_name_and_number() -> None:
    names = claim_names()
    assert [load_claim(name).number for name in names] == list(range(1, 12))
    assert all(load_claim(str(load_claim(name).number)).name == name for name in names)
    with pytest.raises(ConfigError, match="no claim is called 'exprets'; those are: 1 experts, 2 expansion"):
        load_claim("exprets")


def test_a_comparison_of_an_unknown_variant_is_refused() -> None:
    values = {
        "number": 1,
        "name": "a",
        "title": "a",
        "says": "a",
        "variants": {"x": {}},
        "compare": [{"better": "x", "than": "y", "paper": 1.0}],
    }
    with pytest.raises(ConfigError, match="no variant is called y; it has x"):
        parse_claim(values, "a.toml")
    values["compare"] = [{"better": "x", "than": "x"}]
    with pytest.raises(ConfigError, match="either `paper`, a gain, or `within`, a tolerance"):
        parse_claim(values, "a.toml")
