"""Finished networks as one ensemble."""

from collections.abc import Sequence
from dataclasses import replace

import torch

from ebnet.errors import ConfigError
from ebnet.models.network import ExpertBinaryNetwork


def joined(networks: Sequence[ExpertBinaryNetwork], votes: Sequence[float] | None = None) -> ExpertBinaryNetwork:
    """An ensemble whose logits are sum_m v_m logits_m / sum_m v_m; without votes v, their mean.

    The votes become part of the members' classifiers: a linear map times a number is a linear map.
    """
    votes = [1.0] * len(networks) if votes is None else votes
    first = networks[0]
    if len(votes) != len(networks) or min(votes) < 0 or not sum(votes) > 0:
        raise ConfigError(
            f"votes {list(votes)} of {len(networks)} networks: expected one each, none below 0, some above"
        )
    for network in networks:
        if network.config != first.config or network.precision != first.precision or network.others:
            raise ConfigError("an ensemble joins single networks of one structure and one precision")
    made = ExpertBinaryNetwork(replace(first.config, members=len(networks)), first.precision)
    mean = sum(votes) / len(votes)
    for member, network, vote in zip(made.members, networks, votes, strict=True):
        state = network.state_dict()
        for name in ("classifier.weight", "classifier.bias"):
            state[name] = state[name] * (vote / mean)
        own = {name: value for name, value in member.state_dict().items() if not name.startswith("others.")}
        with torch.no_grad():
            for name, value in own.items():
                value.copy_(state[name])
    return made.train(first.training)
