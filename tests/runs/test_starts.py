"""The list of a run's starts: one line each, readable after a crash, and none for a run that is finished."""

import re
from pathlib import Path

from ebnet.runs.starts import STARTS, note_start, read_starts
from tests.tiny_run import TinyRun


def test_every_start_is_one_line(tmp_path: Path) -> None:
    note_start(tmp_path)
    note_start(tmp_path)
    first, second = read_starts(tmp_path)
    assert first["machine"] == second["machine"]
    assert re.fullmatch(r"20\d\d-\d\d-\d\d \d\d:\d\d UTC", first["date"])
    assert first["command"].split()[0]
    assert set(first) == {"date", "machine", "versions", "command"}


def test_a_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    note_start(tmp_path)
    whole = (tmp_path / STARTS).read_bytes()
    (tmp_path / STARTS).write_bytes(whole + whole[:20] + b"\n[1]\n\xff\n" + whole)
    assert len(read_starts(tmp_path)) == 2


def test_a_run_of_before_has_none(tmp_path: Path) -> None:
    assert read_starts(tmp_path) == []


def test_a_training_is_one_start(tiny_run: TinyRun) -> None:
    assert len(read_starts(tiny_run.run)) == 1
