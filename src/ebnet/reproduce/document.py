"""`docs/results.md` from the records: every number in it is one of a record or computed from several."""

from collections.abc import Iterator
from importlib.resources import files
from statistics import mean, stdev

from ebnet.recipe.phases import PHASE_NAMES, title
from ebnet.reproduce.claim import CHAPTERS, claim_names, load_claim
from ebnet.reproduce.opening import opening
from ebnet.reproduce.records import Records
from ebnet.reproduce.routing_figure import has_routing
from ebnet.reproduce.tables import amount, summary, verdict_told
from ebnet.reproduce.verdict import Judgement, Run, judge


def document(records: Records, pilots: Records) -> str:
    """The whole page; the pilots have records of their own."""
    judgements = {
        chapter: [judge(load_claim(n), pilots if chapter == "pilots" else records) for n in claim_names(chapter)]
        for chapter in CHAPTERS
    }
    title, _, head = _template("head.md").partition("\n\n")
    opened = [summary(judgement) for chapter in ("claims", "why") for judgement in judgements[chapter]]
    parts = [title, opening(records, opened, "figures"), head]
    for chapter, of_chapter in judgements.items():
        tried = [judgement for judgement in of_chapter if judgement.tried]
        if chapter != "claims":
            if not tried:
                continue
            parts.append(_template(f"{chapter}.md"))
        parts += [_overview(of_chapter), _effort(of_chapter), *("\n".join(_claim(judgement)) for judgement in tried)]
    everything = [judgement for of_chapter in judgements.values() for judgement in of_chapter if judgement.tried]
    parts += ["\n".join(_runs(everything)), _template("full-scale.md")]
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def _template(name: str) -> str:
    return (files("ebnet") / "reproduce" / "text" / name).read_text(encoding="utf-8")


def _overview(judgements: list[Judgement]) -> str:
    rows = ["| | claim | compared | points | seeds | verdict |", "|---|---|---|---|---|---|"]
    for judgement in judgements:
        told = [finding for finding in judgement.findings if finding.decides or (finding.way and judgement.tried)]
        for at, finding in enumerate(told):
            claim = judgement.claim
            start = f"| {claim.number} | [{claim.title}](#{claim.name}) " if at == 0 and judgement.tried else None
            start = start or (f"| {claim.number} | {claim.title} " if at == 0 else "| | ")
            rows.append(
                f"{start}| {finding.told} | {amount(finding)} | {len(finding.values)} | {verdict_told(finding)} |"
            )
    return "\n".join(rows)


def _effort(judgements: list[Judgement]) -> str:
    phases = {s["key"]: s for judgement in judgements for run in judgement.runs for s in run.phases}
    hours = sum(phase.get("seconds", 0.0) for phase in phases.values()) / 3600
    left_out = [str(judgement.claim.number) for judgement in judgements if not judgement.tried]
    not_run = f" Not run: {', '.join(left_out)}." if left_out else ""
    return f"{len(phases)} trained phases, {hours:.1f} hours of a shared core in training steps.{not_run}"


def _claim(judgement: Judgement) -> Iterator[str]:
    claim = judgement.claim
    yield f"## {claim.number}. {claim.title} {{#{claim.name}}}\n"
    yield f"The paper: {claim.says} {claim.setting}".strip() + "\n"
    yield f"**{judgement.verdict.capitalize()}.**\n"
    yield f"![{claim.title}](figures/results-{claim.name}.svg)\n"
    if has_routing(judgement):
        yield f"![Churn and usage of each routing](figures/results-{claim.name}-routing.svg)\n"
    yield from _variants(judgement)
    yield ""
    yield "| compared | by seed | mean ± standard error | verdict |"
    yield "|---|---|---|---|"
    for finding in judgement.findings:
        by_seed = ", ".join(f"{value:+.2f}" for value in finding.values.values())
        yield f"| {finding.told} | {by_seed} | {amount(finding)} | {verdict_told(finding)} |"


def _variants(judgement: Judgement) -> Iterator[str]:
    """One variant a row: mean accuracies over the seeds, and what the finished network costs."""
    phases = [name for name in PHASE_NAMES if any(name == s["stage"] for run in judgement.runs for s in run.phases)]
    titles = " | ".join(f"{title(phase)}, %" for phase in phases)
    yield f"| | {titles} | training images, % | MBOPs | MMACs | kB | seeds |"
    yield "|" + "---|" * (len(phases) + 6)
    for variant in judgement.claim.variants:
        runs = judgement.of(variant)
        whole = [run for run in runs if not run.failed]
        if not whole:
            continue
        cells = " | ".join([*(_accuracy(whole, phase) for phase in phases), _training_accuracy(whole)])
        cost = whole[0].phases[-1]["cost"]
        sizes = f"{cost['bops'] / 1e6:.3f} | {cost['real_macs'] / 1e6:.3f} | {cost['bytes_fp16'] / 1e3:.1f}"
        yield f"| {variant} | {cells} | {sizes} | {len(whole)} |"
        for run in runs:
            if run.failed:
                yield f"| {variant}, seed {run.seed} | training broke down |" + " |" * (len(phases) + 4)


def _accuracy(runs: list[Run], phase: str) -> str:
    return _mean([100 * s["top1"] for run in runs for s in run.phases if s["stage"] == phase])


def _training_accuracy(runs: list[Run]) -> str:
    """Of the finished network; the first trials did not keep it."""
    return _mean([100 * run.phases[-1]["train_top1"] for run in runs if "train_top1" in run.phases[-1]])


def _mean(values: list[float]) -> str:
    if not values:
        return "-"
    return f"{mean(values):.2f}" + (f" ± {stdev(values) / len(values) ** 0.5:.2f}" if len(values) > 1 else "")


def _runs(judgements: list[Judgement]) -> Iterator[str]:
    """Every run with the records behind it."""
    yield "## The runs\n"
    yield "Top-1 at the end of each phase, in percent, with the record that holds it (`results/runs/KEY.json`).\n"
    yield "| claim | variant | seed | phases |"
    yield "|---|---|---|---|"
    for judgement in judgements:
        for run in judgement.runs:
            phases = "; ".join(f"{_top1(s)} `{s['key']}`" for s in run.phases)
            yield f"| {judgement.claim.number} | {run.variant} | {run.seed} | {phases} |"


def _top1(phase: dict[str, float]) -> str:
    return "failed" if "failed" in phase else f"{100 * phase['top1']:.2f}"
