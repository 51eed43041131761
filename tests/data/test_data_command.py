import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ebnet.cli.data import data
from ebnet.data import CentreCrop, Loader, open_generated
from ebnet.data.bench import measure
from ebnet.errors import DataError


def run(*arguments: str) -> str:
    result = CliRunner().invoke(data, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def test_list_shows_every_set_and_where_it_is() -> None:
    rows = {row["name"]: row for row in json.loads(run("list", "--json"))}
    assert rows["generated"]["found"] == "built in"
    assert Path(rows["mnist5k"]["found"]).is_dir()
    assert rows["folder"]["found"] is None
    text = run("list")
    assert all(name in text for name in rows)


@pytest.mark.parametrize("options", [[], ["--crop", "pad"], ["--crop", "centre", "--workers", "1"]])
def test_bench_counts_pictures(options: list[str]) -> None:
    result = json.loads(run("bench", "generated", "--seconds", "0.1", "--batch-size", "50", "--json", *options))
    assert result["images_per_second"] == pytest.approx(result["pictures"] / result["seconds"])
    assert result["pictures"] >= 50
    assert result["size"] == 32


def test_bench_decodes_folders_from_disk_and_from_memory(folder: Path) -> None:
    options = ["bench", "folder", "--root", str(folder), "--size", "16", "--seconds", "0.1", "--batch-size", "6"]
    assert "images/s  (16x16, resized crop, 0 workers)" in run(*options)
    assert json.loads(run(*options, "--in-memory", "--json"))["in_memory"] is True


def test_fetch_reports_its_errors_as_the_projects_own() -> None:
    with pytest.raises(DataError, match="cannot be fetched"):
        run("fetch", "folder")


def test_measuring_counts_all_but_the_first_batch_across_epochs() -> None:
    """A clock that ticks once a look: two batches are left of the first epoch, two of the second are in time."""
    ticks = iter(range(1000))
    loader = Loader(open_generated(count=30), CentreCrop(32), 10)
    throughput = measure(loader, 6, clock=lambda: float(next(ticks)))
    assert (throughput.pictures, throughput.seconds) == (40, 8.0)
    assert throughput.images_per_second == 5.0
