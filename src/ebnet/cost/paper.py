"""The paper's printed costs, to stand beside ours."""

from dataclasses import dataclass

from ebnet.arch import Arch
from ebnet.models.config import NetworkConfig


@dataclass(frozen=True)
class PrintedCost:
    """A row of the paper's tables: BOPs in 1e9, FLOPs in 1e8, size in MB (None where it prints none)."""

    name: str
    config: NetworkConfig
    bops: float
    flops: float
    megabytes: float | None = None


def _structure(notation: str, bops: float, megabytes: float | None = None) -> PrintedCost:
    """A row of "a few structures explored": 4 experts, all of about 1.1e8 FLOPs."""
    return PrintedCost(notation, NetworkConfig(Arch.parse(notation), experts=4), bops, 1.1, megabytes)


PRINTED = (
    _structure("1242-2-4:4:16:32", 1.3),
    _structure("1262-2-4:4:16:32", 1.5),
    _structure("1282-2-4:4:16:32", 1.7),
    _structure("1242-2-4:4:8:16", 1.6),
    _structure("1262-2-4:4:8:16", 1.9),
    _structure("1282-2-4:4:8:16", 2.2),
    _structure("1262-2-4:8:8:16", 1.7, megabytes=7.8),
    PrintedCost(
        "Real-to-Bin",
        NetworkConfig(Arch.parse("2222-1-1:1:1:1"), stem="conv7x7", shortcut="none", scaling=True),
        1.7,
        1.5,
        megabytes=4.0,
    ),
)
"""The structures table, and the sizes of the model-size table."""
