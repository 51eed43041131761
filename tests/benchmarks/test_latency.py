"""What `benchmarks/latency.py` shows, also when peers are missing."""

import json
import subprocess
import sys
from argparse import ArgumentTypeError
from math import inf
from pathlib import Path

import pytest
from rich.console import Console

from ebnet.report.source import make_report
from latency import numbers, plot, table
from peers import ENGINE, PEERS, Peer, chosen
from peers.process import reason
from peers.turns import Outcome, take_turns

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "latency.py"


@pytest.fixture
def outcomes() -> list[Outcome]:
    return [
        Outcome(ENGINE, 1, "0.1.0", [0.010, 0.005, 0.006]),
        Outcome(PEERS[0], 1, "2.13.0", [0.048, 0.040, 0.070]),
        Outcome(PEERS[-1], 1, reason="larq_compute_engine is not installed"),
    ]


def test_peers_are_chosen_by_name_in_our_order() -> None:
    assert [peer.name for peer in chosen("openvino-int8,torch")] == ["torch", "openvino-int8"]
    assert chosen("all") == PEERS
    assert chosen("none") == []
    with pytest.raises(ArgumentTypeError, match="no peer tensorflow; there are torch, torch-compiled"):
        chosen("torch,tensorflow")


def test_every_name_is_one_peers_alone() -> None:
    assert len({peer.name for peer in PEERS} | {peer.label for peer in PEERS}) == 2 * len(PEERS)


def test_table_has_times_ratios_and_the_reason(outcomes: list[Outcome], capsys: pytest.CaptureFixture[str]) -> None:
    Console(width=120).print(table(numbers(outcomes), "title"))
    engine, torch, larq = (line for line in capsys.readouterr().out.splitlines() if "1262" in line or "18," in line)
    assert engine.replace("│", "").split()[-5:] == ["6.00", "5.00", "1.00", "1.00", "0.1.0"]
    assert torch.replace("│", "").split()[-5:] == ["48.00", "40.00", "8.00", "8.00", "2.13.0"]
    assert "not available: larq_compute_engine" in larq


def test_numbers_are_what_the_report_reads(outcomes: list[Outcome], tmp_path: Path) -> None:
    path = tmp_path / "latency.json"
    path.write_text(json.dumps({"threads": 1, "rounds": 3} | numbers(outcomes)))
    assert ("8.0x", "faster than ResNet-18, torch eager fp32, one thread, in turns") in make_report(path).facts
    assert numbers(outcomes)["missing"][0]["name"] == "Bi-Real-18, Larq Compute Engine"


def test_plot_is_the_same_for_the_same_numbers(outcomes: list[Outcome], tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        plot(numbers(outcomes), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert "<svg" in (tmp_path / "a.svg").read_text()


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        ("peers.nothing:at_all", "peers.nothing is not installed (extra `bench`)"),
        ("tests.benchmarks.broken:dies", "died of SIGILL"),
        ("tests.benchmarks.broken:guesses", "its logits are not the network's: "),
    ],
)
def test_a_peer_that_cannot_be_had_gives_a_reason(build: str, reason: str) -> None:
    (outcome,) = take_turns([(Peer("x", "X", "ebnet", build), 1)], images=1, rounds=1, warm_up=0, threads=1)
    assert outcome.reason is not None
    assert outcome.reason.startswith(reason)
    assert outcome.seconds == []


def test_reasons_have_one_line() -> None:
    assert reason(RuntimeError("no such kernel\nand much more")) == "no such kernel"
    assert reason(MemoryError()) == "MemoryError"


@pytest.mark.slow
def test_who_dies_on_the_way_leaves_the_others_alone() -> None:
    dying = Peer("dying", "Dying", "ebnet", "tests.benchmarks.broken:dies_later", tolerance=10)
    going_on = Peer("x", "X", "ebnet", "tests.benchmarks.broken:guesses", tolerance=inf)
    first, second = take_turns([(dying, 1), (going_on, 2)], images=2, rounds=3, warm_up=1, threads=1)
    assert first.reason == "died of SIGSEGV"
    assert second.reason is None
    assert len(second.seconds) == 3


@pytest.mark.slow
def test_from_the_command_line(tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPT), "--peers", "none", "--rounds", "2", "--json", "--plot", "latency.svg"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert (found["threads"], found["rounds"], found["missing"]) == (1, 2, [])
    (engine,) = found["peers"]
    assert 0 < engine["minimum"] <= engine["median"] < 10
    assert (tmp_path / "latency.svg").exists()
