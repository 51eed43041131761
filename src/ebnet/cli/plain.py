"""Help that shows what one writes: typer's own shows Python's types (`<list[Path]>`, and `<bool>` beside a switch)."""

from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

VALUES = {"path": "PATH", "str": "TEXT", "int": "N", "int range": "N", "float": "X", "float range": "X"}
"""What stands for a value that has no name of its own."""


def _as_written(parameter: Any) -> Any:
    """A switch takes no value; arguments and lists are told by their names; other values have a plain word."""
    several = parameter.nargs == -1 or (getattr(parameter, "multiple", False) and parameter.metavar is None)
    nameless = getattr(parameter, "is_flag", False) or several or parameter.param_type_name == "argument"
    if hasattr(parameter, "display_type_rich"):  # not in older versions of typer, which show no types of Python
        shown = parameter.display_type_rich
        parameter.display_type_rich = lambda ctx: None if nameless else _word(shown(ctx=ctx))
    return parameter


def _word(kind: str | None) -> str | None:
    return VALUES.get(kind.strip("<>"), kind) if kind else kind


class PlainCommand(TyperCommand):
    """A command whose help is in plain words."""

    def get_params(self, ctx: Any) -> list[Any]:
        return [_as_written(parameter) for parameter in super().get_params(ctx)]


class PlainGroup(TyperGroup):
    """A group of commands, likewise."""

    def get_params(self, ctx: Any) -> list[Any]:
        return [_as_written(parameter) for parameter in super().get_params(ctx)]


def speak_plainly(app: typer.Typer) -> None:
    """All commands of the program, those of its groups too."""
    for command in app.registered_commands:
        command.cls = PlainCommand
    for group in app.registered_groups:
        if group.typer_instance is not None:
            speak_plainly(group.typer_instance)
