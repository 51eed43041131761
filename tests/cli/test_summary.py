import json

import pytest
from typer.testing import CliRunner

from ebnet.cli.app import app, main


def run(*words: str) -> str:
    result = CliRunner().invoke(app, list(words), env={"COLUMNS": "100"})
    assert result.exit_code == 0, result.output
    return result.output


def test_one_network_as_json() -> None:
    data = json.loads(run("summary", "1262-2-4:8:8:16", "--experts", "4", "--json"))
    assert data["arch"] == "1262-2-4:8:8:16"
    assert data["experts"] == 4
    assert data["bops"] == 1_706_786_816
    assert data["binary_weights"] == 9_586_688
    keys = {"real_macs", "flops", "real_parameters", "bytes_fp32", "bytes_fp16", "layers"}
    assert keys <= data.keys()
    assert sum(layer["bops"] for layer in data["layers"]) == data["bops"]


def test_several_networks_stand_side_by_side() -> None:
    text = run("summary", "1262-2-4:8:8:16", "1242-2-4:4:8:16")
    assert "1,706,786,816" in text
    assert "1,575,124,992" in text
    assert len(json.loads(run("summary", "1262-2-4:8:8:16", "1242-2-4:4:8:16", "--json"))) == 2


def test_the_papers_table() -> None:
    text = run("summary", "--paper")
    assert "1.7068" in text
    assert "7.66" in text
    assert json.loads(run("summary", "--paper", "--json"))[6]["paper"]["megabytes"] == 7.8


def test_input_size_and_options_change_the_count() -> None:
    small = json.loads(run("summary", "1111-0.25-1:1:2:2", "--input-size", "32", "--stem", "cifar", "--json"))
    plain = json.loads(
        run("summary", "1111-0.25-1:1:2:2", "--input-size", "32", "--stem", "cifar", "--no-aggregation", "--json")
    )
    assert plain["bops"] < small["bops"]


def test_memory() -> None:
    rows = json.loads(run("memory", "--channels", "64", "--size", "8", "--json"))
    assert [row["name"].split(",")[0] for row in rows] == ["convolution", "EBConv", "CondConv"]


def test_errors_are_one_message_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["ebnet", "summary", "1262-2-5:8:8:16"])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 1
    error = capsys.readouterr().err
    assert "5 groups do not divide" in error
    assert "1262-2-5:8:8:16" in error
    assert "Traceback" not in error


def test_no_network_named() -> None:
    result = CliRunner().invoke(app, ["summary"])
    assert result.exit_code == 2
    assert "--paper" in result.output
