"""The recipes that come with the package, as text: naming them needs nothing but the package."""

import tomllib
from importlib.resources import files
from typing import Any


def recipe_names() -> list[str]:
    """The shipped recipes."""
    return sorted(entry.name.removesuffix(".toml") for entry in _home().iterdir() if entry.name.endswith(".toml"))


def shipped_text(name: str) -> str:
    """The TOML of a shipped recipe."""
    return str((_home() / f"{name}.toml").read_text(encoding="utf-8"))


def descriptions() -> dict[str, str]:
    """What each shipped recipe is for."""
    return {name: tomllib.loads(shipped_text(name))["description"] for name in recipe_names()}


def _home() -> Any:
    return files("ebnet.recipe") / "shipped"
