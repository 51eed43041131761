"""Verdicts by rule, from paired differences over seeds.

For a comparison let d be the mean over seeds of the paired difference in points of top-1 and s its standard error.
With t the 95 % quantile of Student's distribution (one-sided, seeds - 1 degrees of freedom):

    shows                       d - t s > 0: better, beyond the scatter of the seeds
    does not show               d + t s < half of what the paper gains on ImageNet
    undecided at this scale     neither; more seeds or longer training would have to tell

Where the paper finds two things equal, within w points: it shows if |d| + t s < w and does not if |d| - t s > w.

A prediction is judged alike on Spearman's rank correlation: it shows where the mean over seeds is above 0 by t s, and
does not where it is below 0.5 by t s. Fewer than three seeds decide nothing.
"""

from dataclasses import dataclass
from math import sqrt
from statistics import mean, stdev
from typing import Any

from scipy.stats import spearmanr, t

from ebnet.reproduce.chain import chain
from ebnet.reproduce.claim import SEEDS, Claim, Comparison
from ebnet.reproduce.records import Records
from ebnet.reproduce.words import DOES_NOT_SHOW, NOT_RUN, SHOWS, UNDECIDED

CONFIDENCE = 0.95
CORRELATED = 0.5


def uncertainty(values: list[float]) -> float:
    """t s: how far the mean of several values may be off, by the rule."""
    return float(t.ppf(CONFIDENCE, len(values) - 1)) * stdev(values) / sqrt(len(values))


@dataclass(frozen=True)
class Run:
    """One variant and seed: the records of its phases, in order."""

    variant: str
    seed: int
    phases: tuple[dict[str, Any], ...]

    @property
    def failed(self) -> bool:
        return any("failed" in phase for phase in self.phases)

    def accuracy(self, measure: str) -> float | None:
        """Percent; None where that was not measured, or the run has no such stage."""
        stage = "stage1" if measure == "stage1" else "stage2"
        phases = [phase for phase in self.phases if phase["stage"].startswith(stage)]
        if not phases:
            return None
        if measure == "training":
            top1 = phases[-1].get("train_top1")
        else:
            top1 = (phases[-1]["epochs"][0] if measure == "first-epoch" else phases[-1])["top1"]
        return None if top1 is None else 100 * float(top1)


@dataclass(frozen=True)
class Finding:
    """One comparison or prediction, decided by rule."""

    what: str
    values: dict[int, float]
    """Difference in points, or correlation, by seed."""
    bar: float
    """What the mean must surely stay below for `does not show`, or, of two things that should be equal, for `shows`."""
    decides: bool
    equal: bool = False
    way: str | None = None

    @property
    def mean(self) -> float:
        return mean(self.values.values())

    @property
    def told(self) -> str:
        """What is compared, and in which way."""
        return f"{self.way}: {self.what}" if self.way else self.what

    @property
    def error(self) -> float:
        """Standard error of the mean."""
        return stdev(self.values.values()) / sqrt(len(self.values)) if len(self.values) > 1 else float("nan")

    @property
    def verdict(self) -> str:
        if not self.values:
            return NOT_RUN
        if len(self.values) < SEEDS:
            return UNDECIDED
        margin = uncertainty(list(self.values.values()))
        if self.equal:
            far, near = abs(self.mean) + margin, abs(self.mean) - margin
            return SHOWS if far < self.bar else DOES_NOT_SHOW if near > self.bar else UNDECIDED
        if self.mean - margin > 0:
            return SHOWS
        return DOES_NOT_SHOW if self.mean + margin < self.bar else UNDECIDED


@dataclass(frozen=True)
class Judgement:
    claim: Claim
    runs: tuple[Run, ...]
    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> str:
        """Of all deciding findings: the claim shows if all do, and does not if one does not."""
        verdicts = {finding.verdict for finding in self.findings if finding.decides}
        for word in (NOT_RUN, DOES_NOT_SHOW, UNDECIDED):
            if word in verdicts:
                return word
        return SHOWS

    @property
    def tried(self) -> bool:
        """Whether all that the verdict rests on was run; a claim that only shares runs with others was not tried."""
        return self.verdict != NOT_RUN

    def of(self, variant: str) -> list[Run]:
        return [run for run in self.runs if run.variant == variant]


def judge(claim: Claim, records: Records, overrides: tuple[str, ...] = ()) -> Judgement:
    """The claim's verdict from the records that are there."""
    runs = tuple(_runs(claim, records, overrides))
    findings = [_compared(comparison, runs) for comparison in claim.compare]
    if claim.predict is not None:
        findings.append(_predicted(claim.predict.networks, runs))
    return Judgement(claim, runs, tuple(findings))


def _runs(claim: Claim, records: Records, overrides: tuple[str, ...]) -> list[Run]:
    found = []
    for variant in claim.variants:
        seed = claim.first_seed
        while True:
            links = chain(claim.recipe_of(variant, seed, overrides))
            if not all(records.has(link.key) for link in links):
                break
            found.append(Run(variant, seed, tuple(records.read(link.key) for link in links)))
            seed += 1
    return found


def _by_seed(runs: tuple[Run, ...], variant: str) -> dict[int, Run]:
    return {run.seed: run for run in runs if run.variant == variant and not run.failed}


def _compared(comparison: Comparison, runs: tuple[Run, ...]) -> Finding:
    better, than = _by_seed(runs, comparison.better), _by_seed(runs, comparison.than)
    differences = {}
    for seed in sorted(better.keys() & than.keys()):
        high, low = (run[seed].accuracy(comparison.measure) for run in (better, than))
        if high is not None and low is not None:
            differences[seed] = high - low
    where = {
        "stage2": "",
        "stage1": ", Stage I",
        "first-epoch": ", after the first epoch of Stage II",
        "training": ", on training images",
    }
    what = f"{comparison.better} against {comparison.than}{where[comparison.measure]}"
    if comparison.within is not None:
        return Finding(what, differences, comparison.within, comparison.decides, True, comparison.way)
    assert comparison.paper is not None
    return Finding(what, differences, comparison.paper / 2, comparison.decides, way=comparison.way)


def _predicted(networks: tuple[str, ...], runs: tuple[Run, ...]) -> Finding:
    by_network = [_by_seed(runs, network) for network in networks]
    correlations = {}
    for seed in sorted(set.intersection(*(set(found) for found in by_network))):
        of_seed = [found[seed] for found in by_network]
        before, after = ([run.accuracy(measure) for run in of_seed] for measure in ("stage1", "stage2"))
        correlations[seed] = float(spearmanr(before, after).statistic)
    return Finding(f"rank correlation over {len(networks)} networks", correlations, CORRELATED, True)
