"""A network given in place of a phase."""

from pathlib import Path

import pytest
import torch

from ebnet.errors import CheckpointError
from ebnet.models.network import ExpertBinaryNetwork
from ebnet.runs.checkpoint import Checkpoint
from ebnet.runs.phase import PhaseDirectory
from ebnet.runs.state import Position
from ebnet.train.given import load_given
from ebnet.train.phase_run import state_of
from ebnet.train.phases import PHASES
from tests.train.tiny import tiny

TEACHER = PHASES["teacher"]
CONFIG = TEACHER.config(tiny(), 10, 3)


def _saved_twice(path: Path) -> tuple[PhaseDirectory, ExpertBinaryNetwork]:
    directory, network = PhaseDirectory(path), ExpertBinaryNetwork(CONFIG, TEACHER.precision)
    for _ in range(2):
        tensors = Checkpoint.join(model=network.state_dict())
        directory.save_last(tensors, state_of(TEACHER, network, Position()))
    return directory, network


def test_a_phase_that_lost_its_last_checkpoint_gives_the_one_before(tmp_path: Path) -> None:
    directory, network = _saved_twice(tmp_path)
    directory.last.unlink()
    given = load_given(str(tmp_path), TEACHER, CONFIG)
    assert all(torch.equal(tensor, given.state_dict()[name]) for name, tensor in network.state_dict().items())


def test_a_damaged_last_checkpoint_is_said_aloud(tmp_path: Path) -> None:
    directory, _ = _saved_twice(tmp_path)
    directory.last.write_bytes(b"torn")
    said: list[str] = []
    load_given(str(tmp_path), TEACHER, CONFIG, said.append)
    assert "damaged" in said[0]
    assert directory.previous.name in said[0]


def test_a_directory_without_any_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="nor the directory of a trained phase"):
        load_given(str(tmp_path), TEACHER, CONFIG)
