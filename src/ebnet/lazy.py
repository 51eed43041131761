"""Public names of a package that are imported on first use, so that importing the package costs nothing."""

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any


def on_first_use(package: str, homes: Mapping[str, Iterable[str]]) -> tuple[list[str], Callable[[str], Any]]:
    """The `__all__` and the `__getattr__` of `package`.

    Args:
        homes: modules, each with the public names that it has.
    """
    home = {name: module for module, names in homes.items() for name in names}

    def find(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(home[name]), name)

    return list(home), find
