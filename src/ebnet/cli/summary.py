"""`ebnet summary`: what networks cost."""

import json
from typing import Annotated

import typer
from rich.console import Console


def summary(
    networks: Annotated[
        list[str] | None,
        typer.Argument(
            help="Networks in the paper's notation, e.g. 1262-2-4:8:8:16, or of cells, e.g. bnas-15x68; several stand "
            "side by side."
        ),
    ] = None,
    experts: Annotated[int, typer.Option(help="Experts per binary convolution.")] = 1,
    input_size: Annotated[int, typer.Option(help="Height and width of the image.")] = 224,
    num_classes: Annotated[int, typer.Option(help="Classes.")] = 1000,
    in_channels: Annotated[int, typer.Option(help="Channels of the image.")] = 3,
    stem: Annotated[
        str, typer.Option(help="imagenet (cheap, /4), conv7x7 (/4), conv3x3 (/8, for cells) or cifar (/1).")
    ] = "imagenet",
    shortcut: Annotated[str, typer.Option(help="Projection of the skips: none, linear, relu or prelu.")] = "prelu",
    aggregation: Annotated[bool, typer.Option(help="Ungrouped 1x1 binary convolutions that mix groups.")] = True,
    scaling: Annotated[bool, typer.Option(help="Data-driven scaling of the binary convolutions.")] = False,
    head_width: Annotated[int | None, typer.Option(help="Width of an extra layer before the classifier.")] = None,
    layers: Annotated[bool, typer.Option(help="Show every layer, also for several networks.")] = False,
    paper: Annotated[bool, typer.Option("--paper", help="The paper's own tables beside our count.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: one object, or a list for several.")] = False,
) -> None:
    """Count a network: binary operations, real operations, parameters and bytes, per layer and in total.

    Example: `ebnet summary 1262-2-4:8:8:16 --experts 4`, or `ebnet summary --paper`.
    """
    from ebnet.cost.paper import PRINTED
    from ebnet.cost.profile import profile
    from ebnet.cost.table import layers_table, paper_table, totals_table
    from ebnet.models.config import NetworkConfig
    from ebnet.models.genotype import parse_arch

    console = Console()
    if paper:
        rows = [(printed, profile(printed.config)) for printed in PRINTED]
        if as_json:
            fields = ("name", "bops", "flops", "megabytes")
            both = [{"paper": {f: getattr(p, f) for f in fields}, "ours": ours.to_dict()} for p, ours in rows]
            print(json.dumps(both))
        else:
            console.print(paper_table(rows))
        return
    if not networks:
        raise typer.BadParameter("name at least one network, e.g. 1262-2-4:8:8:16, or use --paper")
    profiles = [
        profile(
            NetworkConfig(
                parse_arch(name),
                experts=experts,
                num_classes=num_classes,
                in_channels=in_channels,
                stem=stem,  # type: ignore[arg-type]
                shortcut=shortcut,  # type: ignore[arg-type]
                aggregation=aggregation,
                scaling=scaling,
                head_width=head_width,
            ),
            input_size,
        )
        for name in networks
    ]
    if as_json:
        data = [p.to_dict() for p in profiles]
        print(json.dumps(data[0] if len(data) == 1 else data))
        return
    if layers or len(profiles) == 1:
        for one in profiles:
            console.print(layers_table(one))
    console.print(totals_table(profiles))
