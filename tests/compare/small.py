"""Comparisons that take seconds, and records written by hand."""

from pathlib import Path

from ebnet.compare.budget import checked
from ebnet.compare.contest import Contest
from ebnet.reproduce.chain import chain
from ebnet.reproduce.records import Records
from tests.reproduce.generated import ONE_EPOCH_OF_STRIPES

TINY = (
    *ONE_EPOCH_OF_STRIPES,
    "schedule.warmup_epochs=0",
    "stage.stage2.epochs=1",
    "network.arch=1111-0.125-1:1:1:1",
    "network.stem_width=8",
)


def contest(where: Path, *methods: str, seeds: int = 2, equal: str = "ops") -> Contest:
    return Contest(methods, "comparison", checked(equal), seeds, where / "work", where / "results", None, TINY)


def written(one: Contest, top1: dict[str, list[float | None]]) -> None:
    """Records by hand: the accuracy of each method's seeds, None where training broke down."""
    records = Records(one.results)
    for contestant in one.contestants:
        for seed, reached in enumerate(top1[str(contestant)]):
            for link in chain(one.recipe_of(contestant, seed)):
                if reached is None:
                    records.write(records.failure(link, "the loss is no longer a number"))
                elif not records.has(link.key):
                    records.write({"key": link.key, "stage": link.phase, "top1": reached, "seconds": 10.0})
