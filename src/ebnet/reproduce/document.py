"""`docs/results.md` from the records: every number in it is one of a record or computed from several."""

from collections.abc import Iterator
from importlib.resources import files
from statistics import mean, stdev

from ebnet.reproduce.claim import claim_names, load_claim
from ebnet.reproduce.records import Records
from ebnet.reproduce.tables import amount
from ebnet.reproduce.verdict import NOT_RUN, Judgement, Run, judge

STAGE_TITLES = {
    "teacher": "teacher",
    "stage1-one-expert": "Stage I, one expert",
    "stage1-experts": "Stage I",
    "stage2": "Stage II",
}


def document(records: Records) -> str:
    """The whole page."""
    judgements = [judge(load_claim(name), records) for name in claim_names()]
    tried = [judgement for judgement in judgements if judgement.tried]
    parts = [_template("head.md"), _overview(judgements), _effort(judgements)]
    for judgement in tried:
        parts += ["\n".join(_claim(judgement))]
    parts += ["\n".join(_runs(tried)), _template("full-scale.md")]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _template(name: str) -> str:
    return (files("ebnet") / "reproduce" / "text" / name).read_text(encoding="utf-8")


def _overview(judgements: list[Judgement]) -> str:
    rows = ["| | claim | compared | points | seeds | verdict |", "|---|---|---|---|---|---|"]
    for judgement in judgements:
        deciding = [finding for finding in judgement.findings if finding.decides]
        for at, finding in enumerate(deciding):
            claim = judgement.claim
            start = f"| {claim.number} | [{claim.title}](#{claim.name}) " if at == 0 and judgement.tried else None
            start = start or (f"| {claim.number} | {claim.title} " if at == 0 else "| | ")
            rows.append(f"{start}| {finding.what} | {amount(finding)} | {len(finding.values)} | {finding.verdict} |")
    return "\n".join(rows)


def _effort(judgements: list[Judgement]) -> str:
    stages = {s["key"]: s for judgement in judgements for run in judgement.runs for s in run.stages}
    hours = sum(stage.get("seconds", 0.0) for stage in stages.values()) / 3600
    left_out = [str(judgement.claim.number) for judgement in judgements if not judgement.tried]
    not_run = f" Not run: {', '.join(left_out)}." if left_out else ""
    return f"{len(stages)} trained stages, {hours:.1f} hours of a shared core in training steps.{not_run}"


def _claim(judgement: Judgement) -> Iterator[str]:
    claim = judgement.claim
    yield f"## {claim.number}. {claim.title} {{#{claim.name}}}\n"
    yield f"The paper: {claim.says} {claim.setting}".strip() + "\n"
    yield f"**{judgement.verdict.capitalize()}.**\n"
    yield f"![{claim.title}](figures/results-{claim.name}.svg)\n"
    yield from _variants(judgement)
    yield ""
    yield "| compared | by seed | mean ± standard error | verdict |"
    yield "|---|---|---|---|"
    for finding in judgement.findings:
        by_seed = ", ".join(f"{value:+.2f}" for value in finding.values.values())
        verdict = finding.verdict if finding.decides or finding.verdict == NOT_RUN else f"({finding.verdict})"
        yield f"| {finding.what} | {by_seed} | {amount(finding)} | {verdict} |"


def _variants(judgement: Judgement) -> Iterator[str]:
    """One variant a row: the mean accuracy of every stage over the seeds, and what the finished network costs."""
    stages = [name for name in STAGE_TITLES if any(name == s["stage"] for run in judgement.runs for s in run.stages)]
    titles = " | ".join(f"{STAGE_TITLES[stage]}, %" for stage in stages)
    yield f"| | {titles} | MBOPs | MFLOPs | kB | seeds |"
    yield "|" + "---|" * (len(stages) + 5)
    for variant in judgement.claim.variants:
        runs = judgement.of(variant)
        whole = [run for run in runs if not run.failed]
        if not whole:
            continue
        cells = " | ".join(_accuracy(whole, stage) for stage in stages)
        cost = whole[0].stages[-1]["cost"]
        sizes = f"{cost['bops'] / 1e6:.3f} | {cost['flops'] / 1e6:.3f} | {cost['bytes_fp16'] / 1e3:.1f}"
        yield f"| {variant} | {cells} | {sizes} | {len(whole)} |"
        for run in runs:
            if run.failed:
                yield f"| {variant}, seed {run.seed} | training broke down |" + " |" * (len(stages) + 3)


def _accuracy(runs: list[Run], stage: str) -> str:
    values = [100 * s["top1"] for run in runs for s in run.stages if s["stage"] == stage]
    if not values:
        return "-"
    return f"{mean(values):.2f}" + (f" ± {stdev(values) / len(values) ** 0.5:.2f}" if len(values) > 1 else "")


def _runs(judgements: list[Judgement]) -> Iterator[str]:
    """Every run with the records behind it."""
    yield "## The runs\n"
    yield "Top-1 at the end of each stage, in percent, with the record that holds it (`results/runs/KEY.json`).\n"
    yield "| claim | variant | seed | stages |"
    yield "|---|---|---|---|"
    for judgement in judgements:
        for run in judgement.runs:
            stages = "; ".join(f"{_top1(s)} `{s['key']}`" for s in run.stages)
            yield f"| {judgement.claim.number} | {run.variant} | {run.seed} | {stages} |"


def _top1(stage: dict[str, float]) -> str:
    return "failed" if "failed" in stage else f"{100 * stage['top1']:.2f}"
