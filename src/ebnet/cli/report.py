"""`ebnet report`: a run, a study, a comparison or a benchmark as one HTML file."""

from pathlib import Path
from typing import Annotated

import typer


def report(
    source: Annotated[
        Path, typer.Argument(help="A run, a study, the results of `ebnet compare`, or the JSON of `ebnet bench`.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML file to write.")] = Path("report.html"),
    bench: Annotated[Path | None, typer.Option(help="For a run: its bench file, to show speed too.")] = None,
    data: Annotated[Path | None, typer.Option(help="For a run: where its data set lies now, if it moved.")] = None,
    live: Annotated[str | None, typer.Option(help="A packed file or zoo:NAME to try in the report itself.")] = None,
    figures: Annotated[Path | None, typer.Option(help="Also write every figure as PNG and SVG here.")] = None,
) -> None:
    """Write one self-contained HTML file: curves, experts and their classes, features, costs, speed, Pareto fronts.

    Examples:

        ebnet report runs/demo -o report.html --figures figures

        ebnet report runs/demo --live net.ebn

        ebnet report results/comparison

        ebnet bench net.ebn --json > bench.json && ebnet report runs/demo --bench bench.json
    """

    from ebnet.errors import ConfigError
    from ebnet.report.source import make_report

    if output.is_dir():
        raise ConfigError(f"{output} is a directory; name a file, e.g. -o {output / 'report.html'}")
    made = make_report(source, bench, data)
    if live is not None:
        from dataclasses import replace

        from ebnet.web.live import live_panel

        made = replace(made, panel=live_panel(live))
    made.write(output)
    typer.echo(f"{output}: {output.stat().st_size / 1e6:.2f} MB, {len(made.figures)} figures")
    if figures is not None:
        from ebnet.report.plots import save_figures

        written = save_figures(made.figures, figures)
        typer.echo(f"{figures}: {len(written)} files")
