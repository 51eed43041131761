"""Judgements for the terminal and for machines."""

from typing import Any

from rich.table import Table

from ebnet.reproduce.verdict import NOT_RUN, Finding, Judgement


def listing(judgements: list[Judgement]) -> Table:
    """One claim a row, its deciding comparisons below each other."""
    table = Table("", "claim", "compared", "points", "seeds", "verdict")
    for judgement in judgements:
        first = True
        for finding in judgement.findings:
            start = (str(judgement.claim.number), judgement.claim.name) if first else ("", "")
            table.add_row(*start, finding.told, amount(finding), str(len(finding.values)), verdict_told(finding))
            first = False
    return table


def amount(finding: Finding) -> str:
    """Mean and standard error."""
    if not finding.values:
        return "-"
    return f"{finding.mean:+.2f}" + (f" ± {finding.error:.2f}" if len(finding.values) > 1 else "")


def verdict_told(finding: Finding) -> str:
    """In parentheses where nothing rests on it."""
    return finding.verdict if finding.decides or finding.verdict == NOT_RUN else f"({finding.verdict})"


def summary(judgement: Judgement) -> dict[str, Any]:
    return {
        "number": judgement.claim.number,
        "claim": judgement.claim.name,
        "title": judgement.claim.title,
        "verdict": judgement.verdict,
        "findings": [
            {
                "what": finding.what,
                "way": finding.way,
                "by_seed": finding.values,
                "mean": finding.mean if finding.values else None,
                "standard_error": finding.error if len(finding.values) > 1 else None,
                "verdict": finding.verdict,
                "decides": finding.decides,
            }
            for finding in judgement.findings
        ],
        "runs": [
            {"variant": run.variant, "seed": run.seed, "stages": {s["stage"]: s["key"] for s in run.phases}}
            for run in judgement.runs
        ],
    }
