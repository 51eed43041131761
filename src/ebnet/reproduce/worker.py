"""A worker: trains the phases of an experiment one after the other, beside others that do the same.

`python -m ebnet.reproduce.worker ORDER` is what `ebnet reproduce` starts once for each core; ORDER is the JSON of an
`Order`. Workers share nothing but the directories: whoever locks a phase trains it, and a record ends it. A phase that
has its record from elsewhere, but not its network, is trained again for those that follow it; its record stays.
"""

import sys
import time
from functools import cache
from pathlib import Path
from statistics import mean
from typing import Any

import torch

from ebnet.data import Dataset
from ebnet.errors import EbnetError, Interrupted, NonFiniteError, StudyError
from ebnet.models.network import ExpertBinaryNetwork
from ebnet.recipe.settings import Data, Recipe
from ebnet.reproduce.chain import Link, links_before
from ebnet.reproduce.order import Order, Work
from ebnet.reproduce.records import Records, left
from ebnet.runs.directory import RunDirectory, load_phase
from ebnet.runs.lock import locked
from ebnet.runs.metrics import read_metrics
from ebnet.train.pictures import VALIDATION_BATCH, Pictures
from ebnet.train.pipeline import train

SECONDS_BETWEEN_LOOKS = 2.0
TRAINING_IMAGES = 5000
"""Whose accuracy is told beside the validation's."""


def work(order: Work) -> None:
    """Train until every phase has its record, or can never have one."""
    links, records = order.links(), Records(order.results)
    while True:
        possible = [link for link in left(links, records) if not any(records.failed(b.key) for b in link.before)]
        if not possible:
            return
        if not any(_trained(link, order, records) for link in _ready(links, possible, order.work)):
            time.sleep(SECONDS_BETWEEN_LOOKS)  # others are at what is left


def _ready(links: list[Link], possible: list[Link], where: Path) -> list[Link]:
    """What can be trained now, in the order of all: what has no record, and networks that those follow and lack."""
    wanted = {link.key for link in possible}
    wanted |= {link.key for link in links_before(possible) if not link.trained(where)}
    return [link for link in links if link.key in wanted and all(before.trained(where) for before in link.before)]


def _trained(link: Link, order: Work, records: Records) -> bool:
    """Train a phase to its network and its record, unless another worker is at it."""
    with locked(order.work / f"{link.key}.lock") as mine:
        if not mine or (records.has(link.key) and link.trained(order.work)):
            return False
        recipe = link.training(order.work)
        if order.data is not None:
            recipe = recipe.changed({"data.root": str(order.data)})
        record = _record(link, recipe, link.directory(order.work), records)
        if not records.has(link.key):
            records.write(record)
        elif "failed" in record:
            raise StudyError(
                f"{record['failed']}: so ended {link.phase}, trained again for those that follow it, though its record "
                f"tells of a network; delete {records.path(link.key)} to let this count"
            )
        return True


def _record(link: Link, recipe: Recipe, directory: Path, records: Records) -> dict[str, Any]:
    try:
        result = train(recipe, directory, datasets=_pictures(recipe.data)).phases[link.phase]
    except NonFiniteError as error:
        return records.failure(link, str(error))
    lines = read_metrics(RunDirectory(directory).metrics)
    epochs = [_epoch(line) for line in lines if line["kind"] == "epoch" and line["stage"] == link.phase]
    network = load_phase(directory, link.phase)
    return records.record(link, result, _train_top1(network, recipe.data), epochs, network)


@torch.no_grad()
def _train_top1(network: ExpertBinaryNetwork, data: Data) -> float:
    """In evaluation mode: beside the validation accuracy it tells what was not learnt from what does not carry over."""
    pictures = Pictures.open(data, _pictures(data))
    images, labels = pictures.sample(pictures.train, TRAINING_IMAGES)
    network.eval()
    right = sum(
        int((network(pictures.normalise.tensor(part)).argmax(1) == truth).sum())
        for part, truth in zip(images.split(VALIDATION_BATCH), labels.split(VALIDATION_BATCH), strict=True)
    )
    return right / len(labels)


@cache
def _pictures(data: Data) -> tuple[Dataset, Dataset]:
    """Decoded once for all the phases that a worker trains."""
    opened = Pictures.open(data)
    return opened.train, opened.val


def _epoch(line: dict[str, Any]) -> dict[str, Any]:
    """What a record keeps of an epoch; of the routing, the mean over the layers."""
    kept = {"epoch": line["epoch"] + 1, "loss": line["train"]["loss"], "top1": line.get("val", {}).get("top1")}
    layers = line.get("routing", {}).values()
    for name in ("churn", "margin", "distance"):
        if known := [layer[name] for layer in layers if name in layer]:
            kept[name] = round(mean(known), 5)
    return kept


def run(order: Work) -> None:
    """A worker's whole process: an error is one line, as that of any command."""
    try:
        work(order)
    except Interrupted as interruption:
        sys.exit(128 + interruption.signal)
    except EbnetError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    run(Order.from_json(sys.argv[1]))
