"""Every peer that is installed computes the network it stands for: it is compared with torch when it is built."""

import pytest
import torch
from _pytest.mark import ParameterSet

from bireal18 import bireal18
from peers import PEERS, Peer
from peers.process import Contestant, NotAvailable
from pictures import error, fit, pictures
from resnet18 import resnet18


def marked(peer: Peer) -> ParameterSet:
    """All peers together take a minute; torch stands for them in the quick tests."""
    return pytest.param(peer, id=peer.name, marks=[] if peer.name == "torch" else pytest.mark.slow)


@pytest.mark.parametrize("peer", [marked(peer) for peer in PEERS])
def test_logits_are_the_networks(peer: Peer) -> None:
    try:
        contestant = Contestant(peer, batch=1, threads=1)
    except NotAvailable as problem:
        if "(extra `" not in str(problem):
            raise
        pytest.skip(f"{peer.label}: {problem}")
    assert contestant.version
    assert contestant.run(1) > 0
    contestant.close()


@pytest.mark.parametrize("make", [resnet18, bireal18])
def test_networks_tell_pictures_apart(make) -> None:
    """Otherwise the comparison would mean nothing."""
    torch.manual_seed(0)
    model = make(10)
    fit(model, pictures(8, 64, seed=1))
    with torch.no_grad():
        logits = model(pictures(8, 64, seed=2))
    assert (logits - logits.mean(0)).norm() > 0.1 * logits.norm()
    assert error(logits, logits) == 0
    assert error(logits.mean(0).expand_as(logits), logits) > 0.5
    assert error(logits.roll(1, 0), logits) > 0.5
