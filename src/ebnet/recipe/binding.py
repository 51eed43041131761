"""Which settings make a run what it is: those that its weights depend on."""

from typing import Any

from ebnet.recipe.settings import Recipe
from ebnet.recipe.text import write_toml

_FREE = {"description": None, "log": None, "data": ("root", "workers"), "compute": ("device", "threads")}
"""Settings that may change between the parts of a run, because the weights do not depend on them."""


def binding(recipe: Recipe, exclude_defaults: bool = False) -> str:
    """The settings that make the run what it is, as text to compare."""
    values = recipe.model_dump(mode="json", exclude_none=True, exclude_defaults=exclude_defaults)
    for table, keys in _FREE.items():
        if keys is None:
            values.pop(table, None)
        elif table in values:
            values[table] = {key: value for key, value in values[table].items() if key not in keys}
    return write_toml(spread(values))


def spread(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as one flat table of dotted names, so that a line of a difference says where it belongs."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        flat |= spread(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return flat
