"""Latency budgets stand on the engine's own measurement."""

import pytest

from ebnet.arch import Arch
from ebnet.models.config import NetworkConfig
from ebnet.search import latency
from ebnet.search.candidate import Candidate
from ebnet.search.settings import Machine

NETWORK = NetworkConfig(Arch.parse("1111-0.25-1:1:1:1"), experts=2, num_classes=10, in_channels=1)


@pytest.fixture(scope="module")
def meter():
    return latency.LatencyMeter(NETWORK, 28)


def test_a_much_larger_network_is_slower_and_the_base_is_itself(meter):
    base = meter(Candidate.of(NETWORK))
    assert base == pytest.approx(meter.machine.base_ms, rel=0.5)
    assert meter(Candidate.parse("4444-1-1:1:1:1 +1x1 x2")) > 3 * base


def test_the_machine_is_named_and_another_one_is_not_measured_for(meter):
    machine = meter.machine
    assert machine.cpu == latency.cpu_name()
    assert machine.isa in str(machine)
    assert machine.base_ms > 0
    assert meter.adopt(machine)
    assert not meter.adopt(Machine("another CPU", machine.isa, 1, machine.base_ms))
