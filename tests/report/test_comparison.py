"""The report of a comparison: its numbers are those of the records, and hovering names the seed."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from typer.testing import CliRunner

from ebnet.cli.app import app
from ebnet.compare.summary import summary, write_summary
from ebnet.errors import ConfigError
from ebnet.report.figure import Scatter, Strips
from ebnet.report.page import Report
from ebnet.report.source import make_report
from tests.browser import watch
from tests.compare.small import contest, written

REACHED: dict[str, list[float | None]] = {"bnn": [0.5, 0.4], "bi-real": [0.6, 0.44], "ir-net": [0.61, None]}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two budgets of records written by hand, and one that was not run."""
    where = tmp_path_factory.mktemp("compared")
    for equal in ("ops", "bytes"):
        one = contest(where, *REACHED, equal=equal)
        written(one, REACHED)
        write_summary(one, summary(one))
    write_summary(not_run := contest(where, "xnor-net", equal="structure"), summary(not_run))
    return where / "results"


@pytest.fixture(scope="module")
def report(results: Path) -> Report:
    return make_report(results)


def test_points_are_the_records(report: Report) -> None:
    strips, cost = report.figures[:2]
    assert isinstance(strips, Strips)
    assert list(strips.categories) == ["bi-real", "bnn"]
    assert [list(series.values) for series in strips.series] == [pytest.approx([60, 44]), pytest.approx([50, 40])]
    assert strips.errors == pytest.approx([8, 5])  # deviations 11.31 and 7.07 over root 2
    assert list(strips.labels) == ["52.00 ± 8.00", "45.00 ± 5.00"]
    assert isinstance(cost, Scatter)
    assert cost.y == pytest.approx([52, 45])
    assert cost.x_label == "kB"


def test_every_budget_has_its_section_and_says_who_broke_down(report: Report) -> None:
    titles = ["comparison, equal ops", "comparison, equal bytes", "comparison, equal structure"]
    assert [section.title for section in report.sections] == titles
    assert "ir-net broke down: seed 1" in report.sections[0].text
    assert "Not run yet." in report.sections[2].text
    assert report.sections[2].figures == []
    table = report.sections[0].table
    assert table is not None
    assert [row[0] for row in table.rows] == ["bi-real", "bnn", "ir-net"]
    assert "ms" not in table.columns
    assert report.facts[0] == ("bi-real: 52.0 ± 8.0 %", "the best mean of 2, comparison, equal ops")


def test_in_a_browser(report: Report, browser: Browser, tmp_path: Path) -> None:
    for width, scheme in ((360, "dark"), (1000, "light")):
        seen = watch(browser, width=width, scheme=scheme)
        seen.page.goto(report.write(tmp_path / "comparison.html").as_uri())
        row = seen.page.locator("#comparison-ops-top1 .strip").first
        dots = row.locator(".dot")
        expect(dots).to_have_count(2)
        dots.first.hover(force=True)
        expect(seen.page.locator("#tip")).to_contain_text("bi-real, seed 0")
        places = [box["x"] + box["width"] / 2 for box in (dots.nth(i).bounding_box() for i in range(2)) if box]
        mark, strip = row.locator(".mean").bounding_box(), row.bounding_box()
        assert mark is not None
        assert strip is not None
        assert mark["x"] + mark["width"] / 2 == pytest.approx(sum(places) / 2, abs=1)
        assert all(strip["x"] <= place <= strip["x"] + strip["width"] for place in places)
        assert not seen.overflows
        assert seen.complaints == []


def test_the_command_writes_it_with_its_figures(results: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    ran = CliRunner().invoke(app, ["report", str(results), "-o", str(out), "--figures", str(tmp_path / "figures")])
    assert ran.exit_code == 0, ran.output
    assert "4 figures" in ran.output
    assert (tmp_path / "figures" / "comparison-ops-top1.svg").read_text().startswith("<?xml")


def test_standings_of_another_make_are_refused(tmp_path: Path) -> None:
    (tmp_path / "standings").mkdir()
    (tmp_path / "standings" / "comparison-ops.json").write_text(json.dumps({"standings": [{"method": "bnn"}]}))
    with pytest.raises(ConfigError, match="is not the standings of a comparison; `ebnet compare` writes it anew"):
        make_report(tmp_path)
