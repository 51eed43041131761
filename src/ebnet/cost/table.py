"""Tables of a profile: views of the data, narrow enough for 80 columns."""

from rich.box import SIMPLE
from rich.table import Table

from ebnet.cost.paper import PrintedCost
from ebnet.cost.profile import Profile


def layers_table(profile: Profile) -> Table:
    """Every layer of one network, with totals."""
    config = profile.config
    plural = "expert" if config.experts == 1 else "experts"
    height, width = profile.input_size
    table = Table(title=f"{config.arch}, {config.experts} {plural}, {height}x{width}", show_footer=True, box=None)
    table.add_column("layer", "total", no_wrap=True)
    table.add_column("output", justify="right", no_wrap=True)
    columns = {
        "BOPs": "bops",
        "real MACs": "real_macs",
        "elem.": "elementwise",
        "bits": "binary_weights",
        "reals": "real_parameters",
    }
    for title, name in columns.items():
        table.add_column(title, short(getattr(profile, name)), justify="right", no_wrap=True)
    for layer in profile.layers:
        numbers = (short(getattr(layer, name)) for name in columns.values())
        table.add_row(layer.name, "x".join(map(str, layer.output)), *numbers)
    return table


def totals_table(profiles: list[Profile]) -> Table:
    """Networks side by side, one a column."""
    table = Table(title="Cost of one image, and size")
    table.add_column("")
    for profile in profiles:
        table.add_column(str(profile.config.arch), justify="right", no_wrap=True)
    rows = {
        "experts": lambda p: str(p.config.experts),
        "input": lambda p: "x".join(map(str, p.input_size)),
        "BOPs": lambda p: f"{p.bops:,}",
        "real MACs": lambda p: f"{p.real_macs:,}",
        "FLOPs (with elementwise)": lambda p: f"{p.flops:,}",
        "OPs = BOPs/64 + FLOPs": lambda p: f"{round(p.ops):,}",
        "binary weights per expert": lambda p: f"{p.binary_weights:,}",
        "real parameters": lambda p: f"{p.real_parameters:,}",
        "size, fp32 reals": lambda p: megabytes(p.bytes_fp32),
        "size, fp16 reals": lambda p: megabytes(p.bytes_fp16),
        "size, int8 layers": lambda p: megabytes(p.bytes_int8),
    }
    for title, value in rows.items():
        table.add_row(title, *(value(profile) for profile in profiles))
    return table


def paper_table(rows: list[tuple[PrintedCost, Profile]]) -> Table:
    """What the paper prints beside what we count."""
    table = Table(title="The paper's tables beside our count (224x224; MB with fp32 / fp16 reals)", box=SIMPLE)
    table.add_column("network", no_wrap=True)
    for name in ("BOPs 1e9", "ours", "FLOPs 1e8", "ours", "MB", "ours"):
        table.add_column(name, justify="right", no_wrap=True)
    for printed, ours in rows:
        table.add_row(
            printed.name,
            f"{printed.bops:.1f}",
            f"{ours.bops / 1e9:.4f}",
            f"{printed.flops:.1f}",
            f"{ours.flops / 1e8:.3f}",
            "-" if printed.megabytes is None else f"{printed.megabytes:.1f}",
            f"{ours.bytes_fp32 / 1e6:.1f} / {ours.bytes_fp16 / 1e6:.2f}",
        )
    return table


def short(count: int) -> str:
    """Three digits and a unit; nothing for zero."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.3g}{unit}" if count < 1000 * size else f"{count / size:,.0f}{unit}"
    return str(count) if count else ""


def megabytes(count: int) -> str:
    return f"{count / 1e6:.2f} MB" if count >= 1e5 else f"{count / 1e3:.1f} kB"
