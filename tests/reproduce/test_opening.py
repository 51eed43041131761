"""The opening figure: points are the records', what is missing is said, and times are those of the very networks."""

import json
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from ebnet.cost import profile
from ebnet.reproduce import opening
from ebnet.reproduce.chain import chain
from ebnet.reproduce.claim import load_claim
from ebnet.reproduce.engine_times import measure, read_times
from ebnet.reproduce.opening import SHOWN, Point, points, save_opening, sentences
from ebnet.reproduce.records import Records
from ebnet.reproduce.shipped import readme_of, verdicts_of
from ebnet.reproduce.tables import summary
from ebnet.reproduce.verdict import judge
from tests.reproduce.test_page import RESULTS, ROOT

REACHED = {"1 expert": [60.0, 61.0, 60.5], "4 experts": [61.0, 62.2, 61.3], "8 experts": [61.1]}


def written(where: Path, claim_name: str, reached: dict[str, list[float]]) -> Records:
    """Records of Stage II accuracies in percent, seed by seed."""
    claim, records = load_claim(claim_name), Records(where)
    for variant, values in reached.items():
        for at, value in enumerate(values):
            for link in chain(claim.recipe_of(variant, claim.first_seed + at)):
                shown = next(shown for shown in SHOWN if shown.variant == variant)
                cost = {"bytes_fp16": profile(shown.config, 32).bytes_fp16}
                kept = {"key": link.key, "stage": link.phase, "epochs": [], "cost": cost, "top1": value / 100}
                records.write(kept)
    return records


def drawn(found: list[Point], results: Path, monkeypatch: pytest.MonkeyPatch, path: Path) -> Figure:
    figures: list[Figure] = []
    monkeypatch.setattr(opening, "FigureCanvasAgg", figures.append)
    save_opening(found, results, path)
    return figures[0]


def test_only_what_has_records_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = points(written(tmp_path, "experts", REACHED))
    assert [point.shown.variant for point in found] == ["1 expert", "4 experts", "8 experts"]
    assert [point.top1 for point in found] == [pytest.approx(values) for values in REACHED.values()]
    # t = 2.920 of 2 degrees of freedom, one-sided 95 %, times 0.5 and 0.6245 over root 3.
    assert [point.margin for point in found] == pytest.approx([0.8430, 1.0528, 0], abs=1e-3)
    figure = drawn(found, tmp_path, monkeypatch, tmp_path / "opening.svg")
    (size,) = figure.axes  # no times, no second panel
    assert list(size.lines[0].get_xdata()) == [point.kilobytes for point in found]
    assert list(size.lines[0].get_ydata()) == pytest.approx([60.5, 61.5, 61.1])


def test_times_are_of_the_networks_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = points(written(tmp_path, "experts", REACHED))
    measure([found[0].shown.config, found[1].shown.config], 32, tmp_path)
    times = read_times(tmp_path)
    assert times is not None
    assert times.made["machine"]
    assert "command" in times.made
    assert times.of(found[2].shown.config) is None
    figure = drawn(found, tmp_path, monkeypatch, tmp_path / "opening.svg")
    assert list(figure.axes[1].lines[0].get_xdata()) == [times.of(point.shown.config) for point in found[:2]]
    assert times.machine in figure.axes[1].get_xlabel()


def test_a_sentence_each_and_what_was_not_run(tmp_path: Path) -> None:
    records = written(tmp_path, "experts", REACHED)
    told = opening.opening(records, verdicts_of(tmp_path), "figures")
    assert told.startswith("![Top-1 against bytes and milliseconds")
    assert "Means over 1 to 3 seeds" in told
    assert "Not run yet: E=2, 4 experts; E=1; E=2." in told
    # +1.0, +1.2, +0.8: mean 1, deviation 0.2 over root 3.
    assert "**What shows**: 4 experts against 1 expert, with our routing (+1.00 ± 0.12 points)." in told
    assert "**Undecided**: 8 experts against 1 expert, with our routing (+1.10 points)." in told
    assert "Stage I" not in told


def test_what_holds_experts_back_is_told_by_what_decides_it() -> None:
    finding = {"way": "with our routing", "by_seed": [1.0, 1.2], "mean": 1.1, "standard_error": 0.1, "verdict": "shows"}
    decides = finding | {"what": "narrow", "decides": True}
    beside = finding | {"what": "on training images", "decides": False}
    trial = {"claim": "why-width", "chapter": "why", "findings": [decides, beside]}
    assert sentences([trial]) == "**What shows**: narrow, with our routing (+1.10 ± 0.10 points)."
    assert sentences([trial | {"claim": "short-width", "chapter": "short"}]) == ""


def test_before_any_run_there_is_nothing(tmp_path: Path) -> None:
    assert points(Records(tmp_path)) == []
    assert opening.opening(Records(tmp_path), [], "figures") == ""
    assert sentences([summary(judge(load_claim("experts"), Records(tmp_path)))]) == ""


def test_readme_is_what_the_records_give(tmp_path: Path) -> None:
    """`make results` writes it."""
    page = (ROOT / "README.md").read_text()
    assert readme_of(page, RESULTS) == page
    written(tmp_path, "experts", REACHED)
    assert "(docs/figures/results-opening.svg)" in readme_of(page, tmp_path)
    assert readme_of(readme_of(page, tmp_path), RESULTS) == page


def test_the_kept_times_are_of_every_network_that_may_be_drawn() -> None:
    """`ebnet results results --times` measures them."""
    times = read_times(RESULTS)
    assert times is not None
    assert all((times.of(shown.config) or 0) > 0 for shown in SHOWN)
    assert json.loads((RESULTS / "times.json").read_text())["made"]["command"].startswith("ebnet results")
