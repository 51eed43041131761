"""Equal milliseconds: measured once, kept, and the same networks for whoever goes on."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from ebnet.compare import times
from ebnet.compare.contest import Contest
from ebnet.compare.contestants import Contestant
from ebnet.compare.summary import summary
from ebnet.errors import ConfigError
from ebnet.models.config import NetworkConfig
from ebnet.search.settings import Machine
from tests.compare.small import contest

BASE = 1.0


class Clock:
    """A meter that needs no engine: it knows what a width takes, and counts what it was asked."""

    machine = Machine("a CPU", "avx2", 1, BASE)
    asked: list[int] = []  # noqa: RUF012

    def __init__(self, network: NetworkConfig, size: int) -> None:
        assert (network.arch.widths[0], size) == (8, 8)

    def adopt(self, machine: Machine) -> bool:
        return self.machine == machine

    def milliseconds(self, config: NetworkConfig) -> float:
        Clock.asked.append(config.stem_width)
        # Odd widths are slow, even ones get slower with their width; ABC-Net's five bases never come near.
        slow = 10.0 if config.weights == "abc-5" else 1.0 + 2.0 * (config.stem_width % 2)
        return BASE * slow * config.stem_width / 10


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> type[Clock]:
    monkeypatch.setattr(times, "LatencyMeter", Clock)
    Clock.asked = []
    return Clock


def test_the_widest_that_is_as_fast_though_narrower_ones_are_slower(tmp_path: Path, clock: type[Clock]) -> None:
    one = contest(tmp_path, "bnn", equal="milliseconds")
    one.prepare()
    found = one.network(Contestant("bnn"))
    assert found.settings["stem_width"] == 10
    assert found.milliseconds == BASE
    assert clock.asked == sorted(clock.asked, reverse=True)
    assert clock.asked[-1] == 10


def test_cells_are_measured_like_blocks(tmp_path: Path, clock: type[Clock]) -> None:
    one = contest(tmp_path, "bnas-f", equal="milliseconds")
    one.prepare()
    found = one.network(Contestant("bnas-f")).settings
    assert (found["arch"], found["stem_width"]) == ("bnas-4x2", 6)


def test_the_recipes_own_network_is_itself(tmp_path: Path, clock: type[Clock], monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not measured against itself, where a little noise would take its width away."""
    one = contest(tmp_path, "sbaseline", equal="milliseconds")
    monkeypatch.setattr(Clock, "milliseconds", lambda self, config: 9.0)
    one.prepare()
    assert one.network(Contestant("sbaseline")).settings["stem_width"] == 8


def test_who_resumes_trains_the_same_networks_and_measures_nothing(
    tmp_path: Path, clock: type[Clock], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = contest(tmp_path, "bnn", "bi-real:2", equal="milliseconds")
    one.prepare()
    keys, measured = [link.key for link in one.links()], len(clock.asked)
    monkeypatch.setattr(Clock, "milliseconds", lambda self, config: 0.0)
    again = Contest.from_json(one.to_json())
    again.prepare()
    assert again == one
    assert [link.key for link in again.links()] == keys
    assert len(clock.asked) == measured


def test_experts_on_top_take_the_network_of_the_one(tmp_path: Path, clock: type[Clock]) -> None:
    one = contest(tmp_path, "bnn+4", equal="milliseconds")
    one.prepare()
    assert one.network(Contestant.parse("bnn+4")).settings["stem_width"] == 10
    assert one.network(Contestant.parse("bnn+4")).counted.config.experts == 4


def test_those_without_a_time_are_left_out_and_it_is_said_why(tmp_path: Path) -> None:
    """By the engine itself: activations of two bits do not pack."""
    one = contest(tmp_path, "hwgq", "sbaseline", equal="milliseconds", seeds=1)
    one.prepare()
    assert [str(contestant) for contestant in one.contestants] == ["sbaseline"]
    told = summary(one)
    assert [row["method"] for row in told["standings"]] == ["sbaseline"]
    assert told["standings"][0]["milliseconds"] > 0
    assert "`hwgq` is left out: layer 0.0.0 cannot be packed: HalfWave activations are no sum of signs" in " ".join(
        told["notes"]
    )
    kept = json.loads(one.times.path.read_text())
    assert kept["machine"]["cpu"]
    assert kept["methods"]["sbaseline"]["build"].startswith("ebnet ")


def test_one_that_is_never_as_fast_is_left_out(
    tmp_path: Path, clock: type[Clock], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = contest(tmp_path, "abc-net-5", equal="milliseconds")
    monkeypatch.setattr(Clock, "milliseconds", lambda self, config: 3.0 * BASE + config.stem_width)
    one.prepare()
    assert one.contestants == []
    assert "no network is as fast: 1111-0.015625-1:1:1:1 takes 4.0 times as long" in one.left_out["abc-net-5"]


def test_another_machine_trains_but_does_not_measure(tmp_path: Path, clock: type[Clock]) -> None:
    one = contest(tmp_path, "bnn", equal="milliseconds")
    one.prepare()
    kept = json.loads(one.times.path.read_text())
    assert kept["machine"] == asdict(clock.machine)
    one.times.path.write_text(json.dumps(kept | {"machine": kept["machine"] | {"cpu": "another CPU"}}))
    one.prepare()
    more = replace(one, methods=("bnn", "bi-real"))
    with pytest.raises(ConfigError, match=r"was measured on another CPU, avx2 kernels, 1 thread, and this is a CPU"):
        more.prepare()


def test_nothing_is_trained_before_it_was_measured(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"bnn has no network in .*; `ebnet compare` measures before it trains"):
        contest(tmp_path, "bnn", equal="milliseconds").links()
