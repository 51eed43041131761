"""A run small enough for tests: every stage, every kind of loss, in a second or two."""

from pathlib import Path
from typing import Any

from ebnet.data import ArrayDataset, open_generated
from ebnet.recipe.settings import Recipe, parse_recipe

VALUES: dict[str, Any] = {
    "name": "tiny",
    "seed": 3,
    "data": {
        "name": "generated",
        "size": 8,
        "augmentation": "pad-crop",
        "padding": 1,
        "in_memory": True,
        "memory_side": 8,
    },
    "network": {"arch": "1111-0.0625-1:1:1:2", "experts": 2, "stem": "cifar", "scaling": True},
    "schedule": {
        "epochs": 2,
        "batch_size": 200,
        "learning_rate": 0.01,
        "warmup_epochs": 0.5,
        "milestones": [1.5],
        "weight_decay": 1e-5,
        "mixup": 0.2,
    },
    "stage": {
        "stage1-one-expert": {"distill_from": "teacher"},
        "stage1-experts": {"distill_from": "teacher"},
        "stage2": {"distill_from": "stage1-experts", "weight_decay": 0.0},
    },
    "log": {"checkpoint_steps": 2, "log_steps": 1},
    "compute": {"threads": 1},
}


def tiny(**overrides: Any) -> Recipe:
    """The recipe with `schedule__epochs=1` style changes."""
    return parse_recipe(VALUES).changed({key.replace("__", "."): value for key, value in overrides.items()})


def pictures(count: int = 48) -> tuple[ArrayDataset, ArrayDataset]:
    """Less than the recipe's set, for tests within this process."""
    return open_generated("train", count, side=8), open_generated("val", 20, side=8)


def write_recipe(path: Path, **overrides: Any) -> Path:
    path.write_text(tiny(**overrides).to_toml())
    return path
