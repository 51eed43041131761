"""Help that shows what one writes: typer's own shows Python's types (`<list[Path]>`) beside names that say it all."""

import typer
from typer.core import TyperCommand


class PlainCommand(TyperCommand):
    """A command whose repeated parameters are described by their names and help alone."""

    def __init__(self, *arguments: object, **settings: object) -> None:
        super().__init__(*arguments, **settings)  # type: ignore[arg-type]
        for parameter in self.params:
            several = parameter.nargs == -1 or (getattr(parameter, "multiple", False) and not parameter.metavar)
            if several:
                parameter.display_type_rich = lambda ctx: None  # type: ignore[attr-defined]


def speak_plainly(app: typer.Typer) -> None:
    """All commands of the program, those of its groups too."""
    for command in app.registered_commands:
        command.cls = PlainCommand
    for group in app.registered_groups:
        if group.typer_instance is not None:
            speak_plainly(group.typer_instance)
