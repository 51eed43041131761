"""`ebnet inspect`: what is in a packed file."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.markup import escape
from rich.table import Table


def inspect(
    file: Annotated[Path, typer.Argument(help="A packed file.")],
    tensors: Annotated[bool, typer.Option("--tensors", help="List every tensor.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Verify a packed file and show its network, sizes, preprocessing and program.

    Example: `ebnet inspect net.ebn`
    """
    from ebnet.runtime.inspect import inspect as look

    found = look(file)
    if as_json:
        print(json.dumps(found.to_dict()))
        return
    console = Console()
    facts = Table(show_header=False, box=None)
    facts.add_row("network", escape(", ".join(f"{key} {value}" for key, value in found.network.items())))
    facts.add_row("format", f"version {found.version}, reals in {found.reals}")
    facts.add_row(
        "bytes",
        f"{found.file_bytes:,} = {found.bit_bytes:,} bits + {found.real_bytes:,} reals + {found.header_bytes:,} header",
    )
    facts.add_row("input", ", ".join(f"{key} {value}" for key, value in found.preprocessing.items()))
    facts.add_row("labels", _labels(found.labels))
    console.print(facts)
    ops = Table(title="program", box=SIMPLE, padding=(0, 1, 0, 0))
    for column in ("value", "op", "name", "from"):
        ops.add_column(column, no_wrap=True)
    ops.add_column("settings")
    for value, op in enumerate(found.program, 1):
        shown = {key: setting for key, setting in op.items() if key not in ("op", "name", "in")}
        settings = " ".join(f"{key}={setting}" for key, setting in shown.items())
        ops.add_row(str(value), op["op"], escape(op.get("name", "")), ", ".join(map(str, op["in"])), settings)
    console.print(ops)
    if tensors:
        listed = Table(box=SIMPLE, padding=(0, 1, 0, 0))
        for column in ("tensor", "type", "shape", "bytes"):
            listed.add_column(column, overflow="fold")
        for entry in found.tensors:
            listed.add_row(escape(entry.name), entry.dtype, "x".join(map(str, entry.shape)), f"{entry.bytes:,}")
        console.print(listed)


def _labels(labels: list[str]) -> str:
    """The first few, and how many there are."""
    more = ", ..." if len(labels) > 5 else ""
    return f"{len(labels)}: {escape(', '.join(labels[:5]))}{more}" if labels else "none"
