"""How a run was trained: its curves, the accuracy of its phases and the usage of its experts, from its directory."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ebnet.names import spoken
from ebnet.recipe.phases import PhaseName, title
from ebnet.report.figure import Bars, Lines, Series, Span
from ebnet.report.interval import interval_told
from ebnet.runs.directory import RunDirectory
from ebnet.runs.metrics import read_metrics
from ebnet.runs.results import PhaseResult


@dataclass(frozen=True)
class TrainingRecord:
    """What a run has written so far: its epochs in order, and the results of its finished phases."""

    epochs: list[dict[str, Any]]
    results: Mapping[PhaseName, PhaseResult]
    experts: int

    def title(self, phase: PhaseName) -> str:
        return title(phase, self.experts)

    @property
    def usage(self) -> dict[str, list[float]]:
        """The experts' shares in the last validated epoch."""
        return next((record["usage"] for record in reversed(self.epochs) if record.get("usage")), {})


def read_training(run: RunDirectory) -> TrainingRecord:
    """Of a finished, running or interrupted run."""
    epochs = [record for record in read_metrics(run.metrics) if record["kind"] == "epoch"]
    return TrainingRecord(epochs, run.finished(), run.recipe().network.experts)


def curves(record: TrainingRecord) -> list[Lines]:
    """Accuracy and loss over all phases, on one axis of epochs."""
    if not record.epochs:
        return []
    spans: list[Span] = []
    places: list[float] = []
    for i, epoch in enumerate(record.epochs):
        name = record.title(epoch["stage"])
        places.append(i + 1)
        if spans and spans[-1].label == name:
            spans[-1] = Span(spans[-1].start, i + 1, name)
        else:
            spans.append(Span(float(spans[-1].end if spans else 1), i + 1, name))

    def epoch_of(e: dict[str, Any]) -> str:
        return f"{record.title(e['stage'])}, epoch {e['epoch'] + 1}"

    validated = [(x, e) for x, e in zip(places, record.epochs, strict=True) if "val" in e]
    accuracy = [
        Series(
            f"{name} accuracy",
            [100 * e["val"][key] for _, e in validated],
            [f"{epoch_of(e)}\n{name} {e['val'][key]:.2%}" for _, e in validated],
            [x for x, _ in validated],
        )
        for name, key in (("top-1", "top1"), ("top-5", "top5"))
    ]
    loss = [
        Series(
            "training loss",
            [e["train"]["loss"] for e in record.epochs],
            [f"{epoch_of(e)}\n{_terms(e['train'])}" for e in record.epochs],
            places,
        ),
        Series(
            "validation cross entropy",
            [e["val"]["loss"] for _, e in validated],
            [f"{epoch_of(e)}\nvalidation {e['val']['loss']:.4f}" for _, e in validated],
            [x for x, _ in validated],
        ),
    ]
    axis = "epochs, over all phases"
    figures = []
    if validated:
        note = "On images never trained on. Each phase starts from the network of the one before it."
        figures.append(Lines("accuracy-curves", "Validation accuracy", note, accuracy, axis, "%", spans))
    note = "A phase that distils adds the teacher's terms to its loss, so heights compare within a phase only."
    lines = loss if validated else loss[:1]
    figures.append(Lines("loss-curves", "Loss", note, lines, axis, "", spans))
    return figures


def _terms(train: dict[str, float]) -> str:
    return "\n".join(f"{name.replace('_', ' ')} {value:.4f}" for name, value in train.items())


def phase_accuracy(record: TrainingRecord, images: int | None = None) -> list[Bars]:
    """How much accuracy each step towards bits costs; with intervals where the validation images are known."""
    if not record.results:
        return []
    results = list(record.results.values())
    values = Series(
        "top-1",
        [100 * r.top1 for r in results],
        [
            f"{record.title(r.name)}\ntop-1 {r.top1:.2%}, top-5 {r.top5:.2%}\n"
            + (f"95 % interval {interval_told(r.top1, images)}\n" if images else "")
            + (f"taken from {r.source}" if r.source else f"{r.epochs} epochs, {r.seconds:.0f} s of training")
            for r in results
        ],
    )
    return [
        Bars(
            "phase-accuracy",
            "Top-1 accuracy of each phase",
            "The teacher is real-valued. Stage I has binary activations and real weights. In Stage II both are binary: "
            "that is the network that is packed."
            + (f" In parentheses the 95 % interval (Wilson) that {images:,} images leave." if images else ""),
            [record.title(r.name) for r in results],
            [values],
            [f"{r.top1:.1%}" + (f" ({interval_told(r.top1, images)})" if images else "") for r in results],
            limit=100,
        )
    ]


def expert_usage(usage: dict[str, list[float]]) -> list[Bars]:
    """For each layer, how the images divide among its experts."""
    if not usage:
        return []
    experts = max(map(len, usage.values()))
    series = [
        Series(
            f"expert {e}",
            [100 * shares[e] if e < len(shares) else 0.0 for shares in usage.values()],
            [f"{spoken(n)}\nexpert {e}: {s[e]:.1%} of the images" if e < len(s) else "" for n, s in usage.items()],
        )
        for e in range(experts)
    ]
    return [
        Bars(
            "expert-usage",
            "Expert usage of each layer",
            "The share of validation images that each layer sends to each of its experts; at the right, how many of "
            "them take more than 1 %. One colour across a whole bar: the gate has collapsed onto one expert.",
            [spoken(name) for name in usage],
            series,
            [str(sum(share > 0.01 for share in shares)) for shares in usage.values()],
            limit=100,
        )
    ]
