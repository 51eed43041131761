"""Judgements as plain values, for machines and for the package to carry; and as a table, for the terminal."""

from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE
from rich.table import Table

from ebnet.reproduce.words import DOES_NOT_SHOW, NOT_RUN, SHOWS, UNDECIDED

if TYPE_CHECKING:
    from ebnet.reproduce.verdict import Finding, Judgement

Summary = dict[str, Any]


def summary(judgement: "Judgement") -> Summary:
    return {
        "number": judgement.claim.number,
        "claim": judgement.claim.name,
        "title": judgement.claim.title,
        "chapter": judgement.claim.chapter,
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


def listing(summaries: list[Summary]) -> Table:
    """One claim a row, what was compared below each other; a claim that was not run is one line."""
    table = Table("", box=SIMPLE, padding=(0, 1, 0, 0))
    table.add_column("claim", no_wrap=True)
    for column in ("compared", "points", "seeds", "verdict"):
        table.add_column(column)
    for claim in summaries:
        start = (str(claim["number"]), claim["claim"])
        if claim["verdict"] == NOT_RUN:
            table.add_row(*start, claim["title"], "", "", NOT_RUN)
            continue
        for finding in claim["findings"]:
            what = f"{finding['way']}: {finding['what']}" if finding["way"] else finding["what"]
            points = points_told(finding["mean"], finding["standard_error"])
            told = in_parentheses(finding["verdict"], finding["decides"])
            table.add_row(*start, what, points, str(len(finding["by_seed"])), told)
            start = ("", "")
    return table


def amount(finding: "Finding") -> str:
    """Mean and standard error."""
    return points_told(finding.mean if finding.values else None, finding.error if len(finding.values) > 1 else None)


def points_told(mean: float | None, error: float | None) -> str:
    if mean is None:
        return "-"
    return f"{mean:+.2f}" + ("" if error is None else f" ± {error:.2f}")


def verdict_told(finding: "Finding") -> str:
    return in_parentheses(finding.verdict, finding.decides)


def in_parentheses(verdict: str, decides: bool) -> str:
    """In parentheses where the claim's verdict does not rest on it."""
    return verdict if decides or verdict == NOT_RUN else f"({verdict})"


def score(summaries: list[Summary]) -> str:
    """The paper's claims in one line: how many show where they can, and of those first tried where data is short."""
    at_scale = [claim for claim in summaries if claim["chapter"] == "claims"]
    short = [claim for claim in summaries if claim["chapter"] == "short" and claim["verdict"] != NOT_RUN]
    return (
        f"The paper's {len(at_scale)} claims on the 50,000 images of CIFAR-10: {_counts(at_scale)}. "
        f"On 9,469 images, where data is short, {len(short)} were tried: {_counts(short)}."
    )


def _counts(summaries: list[Summary]) -> str:
    words = {SHOWS: "show", DOES_NOT_SHOW: "do not show", UNDECIDED: "undecided", NOT_RUN: "not yet run"}
    counts = {word: sum(claim["verdict"] == word for claim in summaries) for word in words}
    of_one = {SHOWS: "shows", DOES_NOT_SHOW: "does not show"}
    told = {word: of_one.get(word, text) if counts[word] == 1 else text for word, text in words.items()}
    return ", ".join(f"{counts[word]} {text}" for word, text in told.items() if counts[word])
