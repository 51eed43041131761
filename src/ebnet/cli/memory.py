"""`ebnet memory`: the paper's run-time memory table."""

import json
from typing import Annotated

import typer
from rich.console import Console


def memory(
    channels: Annotated[int, typer.Option(help="Input and output channels of the layer.")] = 512,
    size: Annotated[int, typer.Option(help="Height and width of its input.")] = 16,
    experts: Annotated[int, typer.Option(help="Experts of EBConv and CondConv.")] = 4,
    batch: Annotated[int, typer.Option(help="Images at once.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure what a plain, an expert and a conditional 3x3 convolution allocate (appendix, "Memory usage analysis").

    The expert layer adds kilobytes (means and a gate); CondConv mixes its experts into new weights, megabytes.
    """
    from ebnet.cost.memory import measure, memory_table

    rows = measure(channels, size, experts, batch)
    if as_json:
        print(json.dumps([row.to_dict() for row in rows]))
    else:
        Console().print(memory_table(rows))
