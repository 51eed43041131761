"""Many images to one table: the engine's own answers, whatever they are stored in and however often it is stopped."""

import csv
import io
import json
import re
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest
from PIL import Image
from pyarrow import parquet

import ebnet
from ebnet.bulk import job, predict_all, predict_shard
from ebnet.errors import ConfigError, DataError
from tests.tiny_run import TinyRun, some_digits


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve digits in two class folders, a tar shard of three more, and a file that is no image."""
    root = tmp_path_factory.mktemp("many")
    digits = some_digits(15, "val").images[:, :, :, 0]
    for number, digit in enumerate(digits[:12]):
        (root / str(number % 2)).mkdir(exist_ok=True)
        Image.fromarray(digit).save(root / str(number % 2) / f"{number:02}.png")
    with tarfile.open(root / "shard.tar", "w") as shard:
        for number, digit in enumerate(digits[12:]):
            data = io.BytesIO()
            Image.fromarray(digit).save(data, "PNG")
            for name, content in ((f"{number}.png", data.getvalue()), (f"{number}.cls", b"0")):
                member = tarfile.TarInfo(name)
                member.size = len(content)
                shard.addfile(member, io.BytesIO(content))
    (root / "0" / "broken.png").write_bytes(b"no image")
    return root


def read(table: Path) -> list[dict[str, object]]:
    if table.suffix == ".parquet":
        return parquet.read_table(table).to_pylist()
    text = table.read_text()
    if table.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines()]
    rows = csv.DictReader(io.StringIO(text))
    return [{k: None if v == "" else float(v) if k.startswith("prob") else v for k, v in row.items()} for row in rows]


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_the_table_is_what_the_engine_says(tiny_run: TinyRun, folder: Path, tmp_path: Path, ending: str) -> None:
    table = tmp_path / f"out.{ending}"
    seen: list[tuple[int, int]] = []
    outcome = predict_all(
        tiny_run.packed, [folder], table, top=2, processes=1, on_images=lambda *counts: seen.append(counts)
    )
    assert (outcome.images, outcome.unreadable, outcome.taken_up) == (16, 1, 0)
    assert seen[-1] == (16, 16)
    rows = read(table)
    assert len(rows) == 16
    engine = ebnet.load(tiny_run.packed)
    for row in rows:
        path = str(row["image"])
        if "broken" in path:
            assert row["label"] is None
            assert "broken.png is not a readable image" in str(row["error"])
        elif "shard" not in path:
            expected = engine.predict(path, top=2)
            assert [row["label"], row["label_2"]] == expected.labels
            assert [row["probability"], row["probability_2"]] == pytest.approx(expected.probabilities, rel=1e-6)
            assert row["error"] is None
    assert list(tmp_path.iterdir()) == [table]


def test_one_shard_is_one_task(tiny_run: TinyRun, folder: Path) -> None:
    rows = predict_shard(tiny_run.packed, folder / "shard.tar")
    digits = some_digits(15, "val").images[12:]
    engine = ebnet.load(tiny_run.packed)
    assert [row["label"] for row in rows] == [str(label) for label in engine(digits).argmax(1)]
    assert rows[0]["image"] == f"{folder}/shard.tar/0.png"


def test_a_killed_job_goes_on(tiny_run: TinyRun, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts that are there are not computed again, and the table is the same as without a stop."""
    monkeypatch.setattr(job, "PART", 4)
    whole, table = tmp_path / "whole.jsonl", tmp_path / "table.jsonl"
    predict_all(tiny_run.packed, [folder], whole, processes=1)

    class Stopped(Exception):
        pass

    def stop_after_one(done: int, of: int) -> None:
        if done >= 4:
            raise Stopped

    with pytest.raises(Stopped):
        predict_all(tiny_run.packed, [folder], table, processes=1, on_images=stop_after_one)
    assert not table.exists()
    with pytest.raises(ConfigError, match=r"parts of another job \(top differ\)"):
        predict_all(tiny_run.packed, [folder], table, top=3, processes=1)
    outcome = predict_all(tiny_run.packed, [folder], table, processes=1)
    assert outcome.taken_up >= 4
    assert table.read_bytes() == whole.read_bytes()


def test_ctrl_c_and_kill_lose_nothing_and_print_no_traceback(tiny_run: TinyRun, tmp_path: Path) -> None:
    many = tmp_path / "many"
    many.mkdir()
    for number, digit in enumerate(some_digits(40, "val").images[:, :, :, 0]):
        large = io.BytesIO()
        Image.fromarray(digit).resize((400, 400)).save(large, "PNG")
        for copy in range(40):
            (many / f"{number:02}-{copy:02}.png").write_bytes(large.getvalue())
    table = tmp_path / "out.csv"
    command = [sys.executable, "-m", "ebnet", "predict", str(tiny_run.packed), str(many), "-o", str(table)]
    for ending in (signal.SIGINT, signal.SIGKILL):
        parts = tmp_path / "out.csv.parts"
        before = len(list(parts.glob("0*.jsonl"))) if parts.exists() else 0
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            until = time.monotonic() + 60
            while process.poll() is None and time.monotonic() < until:
                if parts.exists() and len(list(parts.glob("0*.jsonl"))) > before:
                    process.send_signal(ending)
                    break
                time.sleep(0.005)
            assert process.stderr is not None
            assert "Traceback" not in process.stderr.read()
    subprocess.run(command, check=True, capture_output=True)
    assert len(read(table)) == 1600


@pytest.mark.parametrize(
    ("source", "out", "error", "complaint"),
    [
        ("nowhere", "a.csv", DataError, "nowhere does not exist"),
        (".", "a.xlsx", ConfigError, r"must end in \.parquet, \.csv, \.jsonl"),
        (".", "no/such/a.csv", ConfigError, "the folder no/such does not exist"),
        ("empty", "a.csv", DataError, "empty: no images"),
        ("bad.tar", "a.csv", DataError, "bad.tar: not a readable tar shard"),
    ],
)
def test_wrong_words(
    tiny_run: TinyRun,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    source: str,
    out: str,
    error: type[Exception],
    complaint: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.tar").write_bytes(b"no tar" * 200)
    with pytest.raises(error, match=complaint):
        predict_all(tiny_run.packed, [source], out)


def test_a_cluster_takes_shards_as_tasks(tiny_run: TinyRun, folder: Path) -> None:
    """The documented line for Dask, on one machine."""
    from functools import partial

    import dask.bag

    task = partial(ebnet.bulk.predict_shard, tiny_run.packed)
    rows = dask.bag.from_sequence([str(folder / "shard.tar")]).map(task).flatten().compute(scheduler="processes")
    assert rows == predict_shard(tiny_run.packed, folder / "shard.tar")


def test_the_command_says_how_many_how_fast_and_nothing_else(tiny_run: TinyRun, folder: Path, tmp_path: Path) -> None:
    words = ["predict", str(tiny_run.packed), str(folder), "-o", str(tmp_path / "out.csv"), "--processes", "2"]
    done = subprocess.run([sys.executable, "-m", "ebnet", *words], capture_output=True, text=True, check=True)
    unreadable = r"1 of them unreadable \(see the column `error`\)"
    assert re.fullmatch(rf".*out\.csv: 16 images, {unreadable}, [1-9][\d,]* images/s\n", done.stdout)
    (bar,) = done.stderr.splitlines()
    assert "16/16" in bar
    assert " 0 images/s" not in bar
