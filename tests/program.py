"""The program's commands, as typer knows them."""

from ebnet.cli.app import app


def commands() -> list[str]:
    """All of them, those of groups as `GROUP COMMAND`."""
    found = [command.name or "" for command in app.registered_commands]
    for group in app.registered_groups:
        assert group.typer_instance is not None
        found += [f"{group.name} {command.name}" for command in group.typer_instance.registered_commands]
    return sorted(found)
