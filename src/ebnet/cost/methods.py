"""The methods of the paper's comparison: what was published beside what we count."""

from typing import Any

from rich.box import SIMPLE
from rich.table import Table

from ebnet.cost.profile import profile
from ebnet.models.config import NetworkConfig
from ebnet.models.method import Method
from ebnet.models.methods import METHODS

WHY = (
    "BOPs: m n a multiply-accumulate of m-bit weights and n-bit activations. FLOPs: real multiply-accumulates, and in "
    "ours the elementwise work of batch norms, scales, activations and skips. MB: with fp32 and with fp16 reals."
)
"""How it is counted."""

ABSENT = {
    "BATS": "Its cells are drawn in the paper; its authors' code has their operations, but neither the cells nor how "
    "many of them, of how many channels and groups, the row has.",
    "CI-Net": "Its interactions between channels are a graph that a policy found by reinforcement learning; neither "
    "the graph nor code was found.",
    "XNOR-Net (WRN40)": "A row for CIFAR-100 alone: a Wide ResNet of three stages, and the notation here has four.",
}
"""Rows of the paper's tables that are no network here, and why."""


def method_values(method: Method) -> dict[str, Any]:
    """A row for machines."""
    counted = profile(NetworkConfig.from_dict(method.settings))
    return {
        "name": method.name,
        "title": method.title,
        "paper": method.paper,
        "year": method.year,
        "bits": method.bits,
        "packs": method.one_bit,
        "published": {
            "top1": method.top1,
            "top5": method.top5,
            "bops": None if method.bops is None else method.bops * 1e9,
            "flops": None if method.flops is None else method.flops * 1e8,
            "bytes": None if method.megabytes is None else method.megabytes * 1e6,
        },
        "counted": {
            "bops": counted.bops,
            "real_macs": counted.real_macs,
            "flops": counted.flops,
            "bytes_fp32": counted.bytes_fp32,
            "bytes_fp16": counted.bytes_fp16,
        },
        "decided": method.decided,
        "differs": method.differs,
        "network": method.settings,
        "training": method.training,
    }


def methods_table() -> Table:
    """All rows, narrow enough for 80 columns."""
    title = "Published, and as we count: 224x224, BOPs in 1e9, FLOPs in 1e8"
    table = Table(title=title, box=SIMPLE, padding=0, pad_edge=False)
    for title in ("network", "year", "bits", "top-1", "BOPs", "ours", "FLOPs", "ours", "MB", "ours"):
        table.add_column(title, justify="left" if title == "network" else "right", no_wrap=True)
    for method in METHODS:
        ours = method_values(method)["counted"]
        table.add_row(
            method.name,
            str(method.year),
            method.bits,
            _shown(method.top1),
            _shown(method.bops),
            f"{ours['bops'] / 1e9:.2f}",
            _shown(method.flops),
            f"{ours['flops'] / 1e8:.3g}",
            _shown(method.megabytes),
            f"{ours['bytes_fp32'] / 1e6:.1f}/{ours['bytes_fp16'] / 1e6:.1f}",
        )
    return table


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
