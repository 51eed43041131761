"""The page of results is the one that the records give, and its numbers are theirs."""

import json
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path
from statistics import mean, stdev

import pytest
from rich.console import Console

from ebnet.errors import ConfigError
from ebnet.reproduce.claim import SEEDS, claim_names, load_claim
from ebnet.reproduce.records import Records
from ebnet.reproduce.shipped import SHIPPED, as_text, named_verdicts, shipped_verdicts, verdicts_of
from ebnet.reproduce.tables import listing, score
from ebnet.reproduce.verdict import judge
from ebnet.reproduce.words import NOT_RUN

ROOT = Path(__file__).parents[2]
RESULTS, PAGE = ROOT / "results", ROOT / "docs" / "results.md"
FIRST = ["short-experts", "short-expansion", "short-condconv", "short-distillation", "short-prediction"]


def test_the_page_is_made_from_the_records(tmp_path: Path) -> None:
    """By the documented command; byte for byte the page in docs, and a figure for every claim that was tried."""
    command = [sys.executable, "-m", "ebnet", "results", str(RESULTS), "-o", str(tmp_path / "results.md")]
    subprocess.run(command, check=True, capture_output=True)
    assert (tmp_path / "results.md").read_text() == PAGE.read_text()
    drawn = {path.name for path in (tmp_path / "figures").iterdir()}
    assert drawn == {path.name for path in (PAGE.parent / "figures").glob("results-*.svg")}
    assert drawn == {Path(found).name for found in re.findall(r"\(figures/(results-\S+?)\)", PAGE.read_text())}


def test_every_record_on_the_page_is_there_and_says_the_same() -> None:
    found = re.findall(r"([\d.]+) `([0-9a-f]{16})`", PAGE.read_text())
    assert found
    for shown, key in found:
        (file,) = RESULTS.glob(f"**/runs/{key}.json")
        record = json.loads(file.read_text())
        assert f"{100 * record['top1']:.2f}" == shown


@pytest.mark.parametrize("name", FIRST)
def test_the_first_claims_have_a_verdict_over_seeds(name: str) -> None:
    judgement = judge(load_claim(name), Records(RESULTS))
    assert judgement.verdict != NOT_RUN
    assert all(len(finding.values) >= SEEDS for finding in judgement.findings if finding.decides)
    assert f"**{judgement.verdict.capitalize()}.**" in PAGE.read_text()


def test_a_difference_worked_out_again_from_the_files() -> None:
    """Without the project's own reader: four experts against one, Stage II."""
    judgement = judge(load_claim("short-experts"), Records(RESULTS))
    differences = []
    for four, one in zip(judgement.of("4 experts"), judgement.of("1 expert"), strict=True):
        top1 = [
            json.loads((RESULTS / "runs" / f"{run.phases[-1]['key']}.json").read_text())["top1"] for run in (four, one)
        ]
        differences.append(100 * (top1[0] - top1[1]))
    told = f"{mean(differences):+.2f} ± {stdev(differences) / len(differences) ** 0.5:.2f}"
    assert (
        f"| 4 experts against 1 expert | {', '.join(f'{d:+.2f}' for d in differences)} | {told} |" in PAGE.read_text()
    )


def test_no_weights_are_kept() -> None:
    sizes = [path.stat().st_size for path in RESULTS.rglob("*") if path.is_file()]
    assert sizes
    assert max(sizes) < 50_000
    assert {path.suffix for path in RESULTS.rglob("*") if path.is_file()} == {".json"}


def test_every_claim_is_on_the_page() -> None:
    page = PAGE.read_text()
    assert all(load_claim(name).title in page for name in claim_names())


def test_seeds_that_chose_a_set_up_confirm_nothing() -> None:
    pilots = {c.first_seed + i for c in map(load_claim, claim_names("pilots")) for i in range(c.seeds)}
    for name in (*claim_names("claims"), *claim_names("why"), *claim_names("second")):
        claim = load_claim(name)
        assert pilots.isdisjoint(range(claim.first_seed, claim.first_seed + claim.seeds))


def test_the_shipped_verdicts_are_those_of_the_records() -> None:
    """`make results` writes them."""
    shipped = ROOT / "src" / "ebnet" / "reproduce" / SHIPPED
    assert shipped.read_text() == as_text(verdicts_of(RESULTS))


def test_readme_tells_the_score_of_the_records() -> None:
    """`make results` writes it; counted here without the project's own words."""
    assert f"<!-- score -->\n{score(verdicts_of(RESULTS))}\n<!-- /score -->" in (ROOT / "README.md").read_text()
    short = [judge(load_claim(name), Records(RESULTS)).verdict for name in claim_names("short")]
    tried = len(short) - short.count(NOT_RUN)
    assert f"{tried} were tried: " in score(shipped_verdicts())
    assert f"{short.count('does not show')} do not show" in score(shipped_verdicts())


def test_shipped_verdicts_by_name_number_and_chapter() -> None:
    assert [claim["claim"] for claim in named_verdicts(["all"])] == claim_names()
    assert [claim["claim"] for claim in named_verdicts(["short", "short-experts"])] == claim_names("short")
    assert [claim["claim"] for claim in named_verdicts(["2", "mixup"])] == [load_claim("2").name, "mixup"]
    with pytest.raises(ConfigError, match=r"no claim is called 'shrot'.*1 experts.*short-experts"):
        named_verdicts(["shrot"])


def test_the_listing_fits_a_terminal_and_cuts_no_name() -> None:
    console = Console(width=80, file=StringIO())
    console.print(listing(shipped_verdicts()))
    told = console.file.getvalue()  # type: ignore[attr-defined]
    assert "…" not in told
    assert all(claim["claim"] in told for claim in shipped_verdicts())
