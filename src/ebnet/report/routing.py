"""How steady a run's gates were, epoch by epoch, and what to change where they were not."""

from statistics import mean
from typing import Any

from ebnet.names import spoken
from ebnet.recipe.settings import Recipe
from ebnet.report.figure import Lines, Series, Span
from ebnet.report.training import TrainingRecord
from ebnet.train.routing_watch import advice, mean_churn

_Epoch = tuple[int, dict[str, Any], dict[str, float]]
"""Its place on the axis of all epochs, its record, and the churn of each layer."""


def routing_steadiness(record: TrainingRecord) -> list[Lines]:
    """The churn of every epoch with several experts: the mean over the layers, and the most restless one."""
    seen = _watched(record)
    if not seen:
        return []
    spans: list[Span] = []
    for x, epoch, _ in seen:
        title = record.title(epoch["stage"])
        if spans and spans[-1].label == title:
            spans[-1] = Span(spans[-1].start, x, title)
        else:
            spans.append(Span(spans[-1].end if spans else x, x, title))
    places = [x for x, _, _ in seen]
    restless = [max(churn, key=lambda name: churn[name]) for _, _, churn in seen]
    series = [
        Series(
            "mean of the layers", [100 * mean(c.values()) for _, _, c in seen], [_tip(s, record) for s in seen], places
        ),
        Series(
            "most restless layer",
            [100 * churn[name] for (_, _, churn), name in zip(seen, restless, strict=True)],
            [f"{spoken(name)}\n{c[name]:.1%} of the images" for (_, _, c), name in zip(seen, restless, strict=True)],
            places,
        ),
    ]
    note = (
        "The share of the same few hundred images whose expert is another than an epoch ago. An expert whose images "
        "come and go learns nothing of its own: the lines should be low, and fall."
    )
    return [Lines("routing-churn", "Images that change expert", note, series, "epochs, over all phases", "%", spans)]


def routing_warnings(record: TrainingRecord, recipe: Recipe) -> list[str]:
    """What was wrong with the routing of each phase as a whole, naming the setting that helps."""
    found = []
    for stage in dict.fromkeys(epoch["stage"] for _, epoch, _ in _watched(record)):
        epochs = [epoch["routing"] for _, epoch, _ in _watched(record) if epoch["stage"] == stage]
        churn = mean(value for value in map(mean_churn, epochs) if value is not None)
        last = {name: layer | {"churn": churn} for name, layer in epochs[-1].items()}
        done = stage in record.results
        found += [f"{record.title(stage)}: {said}." for said in advice(last, recipe.routing, recipe.log.churn, done)]
    return found


def _watched(record: TrainingRecord) -> list[_Epoch]:
    found = []
    for i, epoch in enumerate(record.epochs):
        churn = {name: layer["churn"] for name, layer in epoch.get("routing", {}).items() if "churn" in layer}
        if churn:
            found.append((i + 1, epoch, churn))
    return found


def _tip(seen: _Epoch, record: TrainingRecord) -> str:
    _, epoch, churn = seen
    layers = epoch["routing"].values()
    return (
        f"{record.title(epoch['stage'])}, epoch {epoch['epoch'] + 1}\n"
        f"{mean(churn.values()):.1%} of the images changed expert\n"
        f"margin {mean(layer['margin'] for layer in layers):.2f}, "
        f"experts apart by {mean(layer['distance'] for layer in layers):.0%} of their size"
    )
