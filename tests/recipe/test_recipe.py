"""Recipes: the shipped ones hold the paper's numbers, and wrong ones say what was meant."""

import pytest

from ebnet.errors import ConfigError
from ebnet.recipe.settings import PHASE_NAMES, Routing, load_recipe, parse_recipe, recipe_names
from ebnet.recipe.text import read_toml


def test_the_shipped_recipes_are_all_valid_and_survive_being_written() -> None:
    assert recipe_names() == [
        "cifar10",
        "cifar100",
        "comparison",
        "comparison-20",
        "demo",
        "evidence",
        "evidence-short",
        "evidence-tiny",
        "fashion-mnist",
        "fine-tune",
        "imagenet",
        "imagenet-distilled",
        "imagenet-steady",
        "imagenet-strong-teacher",
        "imagenette",
        "images",
        "zoo-cifar10",
        "zoo-digits",
        "zoo-fashion-mnist",
        "zoo-imagenette",
    ]
    for name in recipe_names():
        recipe = load_recipe(name)
        assert recipe.name == {"evidence-short": "evidence"}.get(name, name)  # records are known by that name
        assert recipe.description
        assert parse_recipe(read_toml(recipe.to_toml(), name)) == recipe


def test_recipes_for_users_route_steadily_and_the_papers_as_the_paper() -> None:
    for name in recipe_names():
        ours = Routing(gate_start="clusters", gate_rate=0.1, coupling=1.0)
        paper = name == "evidence-short" or (name.startswith("imagenet-") and name != "imagenet-steady")
        assert load_recipe(name).routing == (Routing() if paper or name == "imagenet" else ours)
    steady, imagenet = (load_recipe(name) for name in ("imagenet-steady", "imagenet"))
    same = {"name": "imagenet", "description": imagenet.description, "routing": Routing()}
    assert steady.model_copy(update=same) == imagenet


def test_imagenet_is_trained_as_the_paper_says() -> None:
    recipe = load_recipe("imagenet")
    assert recipe.stages == PHASE_NAMES[1:]
    assert (recipe.network.arch, recipe.network.experts) == ("1262-2-4:8:8:16", 4)
    assert (recipe.data.size, recipe.data.resize, recipe.data.augmentation) == (224, 256, "random-resized-crop")
    for name in recipe.stages:
        settings = recipe.settings(name)
        assert (settings.epochs, settings.learning_rate, settings.warmup_epochs) == (75, 1e-3, 10)
        assert (settings.milestones, settings.decay, settings.mixup) == ((40, 55, 65), 0.1, 0.2)
        assert settings.weight_decay == (0.0 if name == "stage2" else 1e-5)
        assert recipe.table(name).distill_from is None


@pytest.mark.parametrize("name", ["imagenet-distilled", "imagenet-strong-teacher"])
def test_distilled_recipes_follow_the_progressive_scheme(name: str) -> None:
    recipe = load_recipe(name)
    assert recipe.stages == PHASE_NAMES
    assert recipe.network.scaling
    teachers = [recipe.table(stage).distill_from for stage in PHASE_NAMES]
    assert teachers == [None, "teacher", "teacher", "stage1-experts"]
    deeper = name == "imagenet-strong-teacher"
    assert (recipe.table("teacher").arch is not None) == deeper
    assert recipe.distillation.attention_after == ("stage" if deeper else "block")


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("stage.stage2.epoch=3", "unknown setting stage.stage2.epoch; did you mean stage.stage2.epochs?"),
        ("epochs=3", "did you mean schedule.epochs or stage.NAME.epochs?"),
        ("stage.stage3.epochs=3", "unknown setting stage.stage3; did you mean stage.stage2?"),
        ("schedul.epochs=3", "did you mean schedule?"),
        ("compute.foo=1", "known here: device, threads"),
        ("schedule.epochs=0", "schedule.epochs = 0: Input should be greater than or equal to 1"),
        ("schedule.milestones=[3,2]", "milestones [3.0, 2.0] must rise"),
        ("network.arch=1262-2-", "1262-2-"),
        ('stages=["stage2","teacher"]', "in this order"),
        ('stage.teacher.distill_from="stage2"', "not a stage before it; those are none"),
        ("stage.stage2.arch=1111-1-1:1:1:1", "only the teacher may have a structure of its own"),
        ("stage.teacher.arch=2222-1-1:1:1:1", 'set distillation.attention_after = "stage"'),
        ("network", "expected KEY=VALUE"),
        ("seed.x=1", "seed is a value, not a table"),
    ],
)
def test_wrong_settings_are_named_and_the_right_one_is_suggested(override: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        load_recipe("demo", ["seed=1", override])
    assert message in str(error.value)


def test_overrides_are_toml_values_or_plain_text() -> None:
    recipe = load_recipe(
        "demo",
        ["network.arch=1111-0.5-1:1:1:1", "network.experts = 8", "schedule.milestones=[1, 2]", 'data.root="/x y"'],
    )
    assert recipe.network.arch == "1111-0.5-1:1:1:1"
    assert recipe.network.experts == 8
    assert recipe.schedule.milestones == (1, 2)
    assert recipe.data.root == "/x y"
    assert recipe.changed({"stage.stage2.epochs": 2}).settings("stage2").epochs == 2


def test_a_missing_recipe_lists_those_that_exist(tmp_path: object) -> None:
    with pytest.raises(ConfigError, match="neither a file nor a shipped recipe; those are cifar10"):
        load_recipe(f"{tmp_path}/none.toml")


def test_a_network_of_digits_alone_is_a_name() -> None:
    """TOML takes `network.arch=1111` for a number."""
    assert load_recipe("demo", ["network.arch=1121"]).network.arch == "1121"
