"""The report of a study: its points are the study's, and hovering names the network."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from ebnet.report.figure import Bars, Scatter
from ebnet.report.page import Report
from ebnet.report.source import make_report
from ebnet.search.population import Population, population
from ebnet.search.worker import Worker
from tests.browser import watch
from tests.search.studies import formula, study


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Population]:
    directory = tmp_path_factory.mktemp("search") / "study"
    made = study(directory)
    Worker(made, formula, poll=0.01).run()
    return directory, population(made)


@pytest.fixture(scope="module")
def report(finished: tuple[Path, Population]) -> Report:
    return make_report(finished[0])


def test_points_are_the_studys(report: Report, finished: tuple[Path, Population]) -> None:
    found = finished[1]
    pareto = report.figures[0]
    assert isinstance(pareto, Scatter)
    trained = [member for member in found.members if member.accuracy is not None]
    assert len(trained) > 5
    assert list(pareto.y) == [100 * (member.accuracy or 0) for member in trained]
    assert list(pareto.x) == [member.costs[found.cost] for member in trained]
    assert {trained[i].candidate for i in pareto.front} == {m.candidate for m in trained if m.on_front}
    assert [pareto.x[i] for i in pareto.front] == sorted(pareto.x[i] for i in pareto.front)
    assert pareto.colourings[0].groups.count(2) == 1  # type: ignore[attr-defined]


def test_payoffs_and_candidates(report: Report, finished: tuple[Path, Population]) -> None:
    bars = report.figures[1]
    assert isinstance(bars, Bars)
    assert len(bars.categories) == len(finished[1].payoffs)
    table = report.sections[-1].table
    assert table is not None
    accuracies = [float(row[1]) for row in table.rows]
    assert accuracies == sorted(accuracies, reverse=True)


def test_in_a_browser(report: Report, browser: Browser, tmp_path: Path) -> None:
    seen = watch(browser, width=360, scheme="dark")
    seen.page.goto(report.write(tmp_path / "study.html").as_uri())
    seen.page.locator("#pareto .dot").first.hover(force=True)
    expect(seen.page.locator("#tip")).to_contain_text("top-1")
    assert not seen.overflows
    assert seen.complaints == []
