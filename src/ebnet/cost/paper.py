"""The paper's printed costs, to stand beside ours."""

from dataclasses import dataclass

from ebnet.arch import Arch
from ebnet.models.config import NetworkConfig


@dataclass(frozen=True)
class PrintedCost:
    """A row of the paper's tables: BOPs in 1e9, FLOPs in 1e8, size in MB (None where it prints none)."""

    config: NetworkConfig
    table: str
    bops: float
    flops: float | None = None
    megabytes: float | None = None


def _network(notation: str, **settings: object) -> NetworkConfig:
    return NetworkConfig(Arch.parse(notation), experts=4, **settings)  # type: ignore[arg-type]


# "Comparison on ImageNet between a few structures explored", all of about 1.1e8 FLOPs, and the model-size table.
PRINTED = (
    PrintedCost(_network("1242-2-4:4:16:32"), "structures", 1.3, 1.1),
    PrintedCost(_network("1262-2-4:4:16:32"), "structures", 1.5, 1.1),
    PrintedCost(_network("1282-2-4:4:16:32"), "structures", 1.7, 1.1),
    PrintedCost(_network("1242-2-4:4:8:16"), "structures", 1.6, 1.1),
    PrintedCost(_network("1262-2-4:4:8:16"), "structures", 1.9, 1.1),
    PrintedCost(_network("1282-2-4:4:8:16"), "structures", 2.2, 1.1),
    PrintedCost(_network("1262-2-4:8:8:16"), "structures, model size", 1.7, 1.1, 7.8),
    PrintedCost(
        NetworkConfig(Arch.parse("2222-1-1:1:1:1"), stem="conv7x7", shortcut="none", scaling=True),
        "Real-to-Bin, model size",
        1.7,
        1.5,
        4.0,
    ),
)
