"""`ebnet methods`: the rivals, published and counted."""

from typing import Annotated

import typer


def methods(
    json_: Annotated[bool, typer.Option("--json", help="Print JSON, with papers, settings and decisions.")] = False,
) -> None:
    """List the methods of the paper's comparison: published accuracy and costs beside our count.

    Every name is a network for Python: `ebnet.create_model("ir-net")`.

    Examples:

        ebnet methods

        ebnet methods --json
    """
    import json

    from rich.console import Console

    from ebnet.cost.methods import ABSENT, WHY, method_values, methods_table
    from ebnet.models.methods import METHODS

    if json_:
        typer.echo(json.dumps([method_values(method) for method in METHODS]))
        return
    console = Console()
    console.print(methods_table())
    console.print(WHY)
    for method in METHODS:
        if notes := " ".join(filter(None, (method.decided, method.differs))):
            console.print(f"[bold]{method.name}[/]: {notes}", highlight=False)
    for row, why in ABSENT.items():
        console.print(f"not here: [bold]{row}[/]. {why}", highlight=False)
