"""Tables of a profile: views of the data, nothing is computed here."""

from rich.table import Table

from ebnet.cost.paper import PrintedCost
from ebnet.cost.profile import Profile


def layers_table(profile: Profile) -> Table:
    """Every layer of one network, with totals."""
    config = profile.config
    plural = "expert" if config.experts == 1 else "experts"
    height, width = profile.input_size
    table = Table(title=f"{config.arch}, {config.experts} {plural}, {height}x{width}", show_footer=True)
    table.add_column("layer", "total")
    table.add_column("output", justify="right")
    for name in ("bops", "real_macs", "elementwise", "binary_weights", "real_parameters"):
        table.add_column(name.replace("_", " "), f"{getattr(profile, name):,}", justify="right")
    for layer in profile.layers:
        numbers = (layer.bops, layer.real_macs, layer.elementwise, layer.binary_weights, layer.real_parameters)
        table.add_row(layer.name, "x".join(map(str, layer.output)), *(f"{n:,}" if n else "" for n in numbers))
    return table


def totals_table(profiles: list[Profile]) -> Table:
    """Networks side by side."""
    table = Table(title="Cost of one picture, and size")
    table.add_column("network")
    for name in ("experts", "input", "BOPs", "real MACs", "FLOPs", "OPs", "binary weights", "reals", "fp32", "fp16"):
        table.add_column(name, justify="right")
    for profile in profiles:
        table.add_row(
            str(profile.config.arch),
            str(profile.config.experts),
            "x".join(map(str, profile.input_size)),
            f"{profile.bops:.4e}",
            f"{profile.real_macs:.3e}",
            f"{profile.flops:.3e}",
            f"{profile.ops:.3e}",
            f"{profile.binary_weights:,}",
            f"{profile.real_parameters:,}",
            megabytes(profile.bytes_fp32),
            megabytes(profile.bytes_fp16),
        )
    return table


def paper_table(rows: list[tuple[PrintedCost, Profile]]) -> Table:
    """What the paper prints beside what we count."""
    table = Table(title="The paper's tables beside our count (224x224)")
    table.add_column("network")
    table.add_column("in the paper's table")
    for name in ("BOPs 1e9", "ours", "FLOPs 1e8", "ours", "MB", "ours fp32", "ours fp16"):
        table.add_column(name, justify="right")
    for printed, ours in rows:
        table.add_row(
            str(printed.config.arch),
            printed.table,
            f"{printed.bops:.1f}",
            f"{ours.bops / 1e9:.4f}",
            "-" if printed.flops is None else f"{printed.flops:.1f}",
            f"{ours.flops / 1e8:.3f}",
            "-" if printed.megabytes is None else f"{printed.megabytes:.1f}",
            f"{ours.bytes_fp32 / 1e6:.2f}",
            f"{ours.bytes_fp16 / 1e6:.2f}",
        )
    return table


def megabytes(count: int) -> str:
    return f"{count / 1e6:.2f} MB" if count >= 1e5 else f"{count / 1e3:.1f} kB"
