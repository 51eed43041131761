"""The paper's own networks: its result tables and the constellations of its figures, with the accuracies it prints."""

from collections.abc import Iterator
from dataclasses import dataclass

from ebnet.arch import Arch
from ebnet.cost.paper import PRINTED
from ebnet.models.config import NetworkConfig

Accuracy = tuple[float, float]
"""Top-1 and top-5 on ImageNet, in percent."""


@dataclass(frozen=True)
class PaperNetwork:
    """One row of a table, or one point of a figure.

    Attributes:
        source: the table or figure.
        place: constellation and location, for figures.
        stage1, stage2: accuracies, where printed.
        bops: billions, where printed.
    """

    source: str
    config: NetworkConfig
    place: str = ""
    stage1: Accuracy | None = None
    stage2: Accuracy | None = None
    bops: float | None = None
    remark: str = ""


_BOPS = {printed.name: printed.bops for printed in PRINTED}


def _config(notation: str, experts: int = 1, aggregation: bool = True, **more: str) -> NetworkConfig:
    return NetworkConfig(Arch.parse(notation), experts=experts, aggregation=aggregation, **more)  # type: ignore[arg-type]


def _arrangements() -> Iterator[PaperNetwork]:
    rows = {"1133": (63.8, 86.5), "1142": (63.8, 86.8), "1124": (63.7, 87.4), "2222": (63.9, 87.4)}
    for blocks, accuracy in rows.items():
        yield PaperNetwork("Block arrangements", _config(f"{blocks}-1-1:1:1:1"), stage1=accuracy)


def _experts_and_expansion() -> Iterator[PaperNetwork]:
    """Width expansion here has G = k^2 groups and no 1x1 aggregation, so that all have the same BOPs."""
    rows = (
        (1, 1, (60.9, 83.0)),
        (2, 1, (64.6, 85.6)),
        (4, 1, (65.1, 86.0)),
        (1, 4, (63.8, 85.1)),
        (1, 8, (64.0, 85.3)),
        (2, 4, (66.0, 86.4)),
        (2, 8, (66.3, 86.6)),
    )
    for k, experts, accuracy in rows:
        config = _config(f"2222-{k}-" + ":".join([str(k * k)] * 4), experts, aggregation=k == 1)
        remark = "SBaseline" if k == experts == 1 else ""
        yield PaperNetwork("Experts and expansion", config, stage2=accuracy, remark=remark)
    yield PaperNetwork(
        "Against CondConv", _config("2222-1-1:1:1:1", 4, conv="cond"), remark="binarized CondConv: top-1 61.2"
    )


def _structures() -> Iterator[PaperNetwork]:
    rows: tuple[tuple[str, Accuracy, Accuracy], ...] = (
        ("1242-2-4:4:16:32", (68.4, 87.7), (66.3, 86.5)),
        ("1262-2-4:4:16:32", (69.0, 88.1), (66.8, 86.8)),
        ("1282-2-4:4:16:32", (69.7, 88.8), (67.7, 87.4)),
        ("1242-2-4:4:8:16", (68.9, 88.0), (67.0, 87.1)),
        ("1262-2-4:4:8:16", (69.7, 88.6), (67.6, 87.3)),
        ("1282-2-4:4:8:16", (69.7, 88.7), (67.8, 87.5)),
        ("1262-2-4:8:8:16", (69.5, 88.6), (67.5, 87.5)),
    )
    for notation, stage1, stage2 in rows:
        config = _config(notation, 4)
        yield PaperNetwork("Structures explored", config, "", stage1, stage2, _BOPS[notation])
    final, bops = _config("1262-2-4:8:8:16", 4), _BOPS["1262-2-4:8:8:16"]
    yield PaperNetwork("Structures explored", final, "", (71.6, 90.1), (70.0, 89.2), bops, "AT+KD")
    yield PaperNetwork("State of the art", final, "", None, (71.2, 90.1), bops, "AT+KD, stronger teacher")


_DEPTH = (
    ("1-1:1:1:1", ("2222", "1182", "1282", "1184", "1188", "1288")),
    ("2-4:4:4:4", ("1132", "1133", "1233", "2233", "2282", "1188")),
    ("2-4:4:8:16", ("1242", "1262", "1282", "1284")),
)
_GROUPS = ("4:8:16:32", "4:4:16:16", "4:8:8:16", "4:4:8:16")
_GROUPS_BLOCKS = ("1142", "1242", "1162", "1162")


def _constellations() -> Iterator[PaperNetwork]:
    for number, (rest, blocks) in enumerate(_DEPTH, 1):
        for location, arrangement in enumerate(blocks, 1):
            yield PaperNetwork("Fig. depth", _config(f"{arrangement}-{rest}"), f"{number}.{location}")
    for number, arrangement in enumerate(_GROUPS_BLOCKS, 1):
        for location, groups in enumerate(_GROUPS, 1):
            if number == 4 and location == 1:
                continue  # the paper lists locations 2 to 4 of its fourth constellation
            remark = "printed the same as constellation 3" if number == 4 else ""
            network = _config(f"{arrangement}-2-{groups}")
            yield PaperNetwork("Fig. groups", network, f"{number}.{location}", remark=remark)


PAPER_NETWORKS = (*_arrangements(), *_experts_and_expansion(), *_structures(), *_constellations())
