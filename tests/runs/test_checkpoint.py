"""Checkpoints come back exactly, or are noticed to be damaged."""

from pathlib import Path

import pytest
import torch

from ebnet.errors import CheckpointError
from ebnet.runs.checkpoint import (
    Checkpoint,
    load_checkpoint,
    optimizer_tensors,
    restore_optimizer,
    save_checkpoint,
)
from ebnet.runs.phase import LAST, PREVIOUS, PhaseDirectory


def _checkpoint(value: float) -> Checkpoint:
    tensors = Checkpoint.join(
        model={"a": torch.full((3, 2), value), "n": torch.tensor(4)}, random={"t": torch.zeros(0)}
    )
    return Checkpoint(tensors, {"step": value, "list": [1, 0.1]})


def _save_two(directory: Path) -> None:
    for value in (1.0, 2.0):
        save_checkpoint(directory / LAST, _checkpoint(value), directory / PREVIOUS)


def test_a_checkpoint_comes_back_as_it_was(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / LAST, _checkpoint(1.5))
    back = load_checkpoint(tmp_path / LAST)
    assert back.state == {"step": 1.5, "list": [1, 0.1]}
    assert torch.equal(back.part("model")["a"], torch.full((3, 2), 1.5))
    assert back.part("model")["n"].item() == 4
    assert list(tmp_path.iterdir()) == [tmp_path / LAST]


def test_the_previous_one_is_kept(tmp_path: Path) -> None:
    _save_two(tmp_path)
    assert load_checkpoint(tmp_path / LAST).state["step"] == 2.0
    assert load_checkpoint(tmp_path / PREVIOUS).state["step"] == 1.0


def _flip_in_data(content: bytearray) -> None:
    content[-1] ^= 1


def _flip_in_state(content: bytearray) -> None:
    content[content.index(b"0.1]")] = ord("1")


def _cut(content: bytearray) -> None:
    del content[len(content) // 2 :]


def _empty(content: bytearray) -> None:
    content.clear()


@pytest.mark.parametrize("damage", [_flip_in_data, _flip_in_state, _cut, _empty])
def test_damage_is_noticed_and_the_previous_one_used(tmp_path: Path, damage: object) -> None:
    _save_two(tmp_path)
    content = bytearray((tmp_path / LAST).read_bytes())
    damage(content)  # type: ignore[operator]
    (tmp_path / LAST).write_bytes(content)
    with pytest.raises(CheckpointError, match="damaged"):
        load_checkpoint(tmp_path / LAST)
    said: list[str] = []
    newest = PhaseDirectory(tmp_path).newest(said.append)
    assert newest is not None
    assert newest.state["step"] == 1.0
    assert "damaged" in said[0]
    assert PREVIOUS in said[0]


def test_without_any_whole_checkpoint_nothing_is_trained_over(tmp_path: Path) -> None:
    assert PhaseDirectory(tmp_path).newest(print) is None
    _save_two(tmp_path)
    for name in (LAST, PREVIOUS):
        (tmp_path / name).write_bytes(b"not a checkpoint")
    with pytest.raises(CheckpointError, match="No whole checkpoint is left"):
        PhaseDirectory(tmp_path).newest(print)


def test_another_format_is_refused(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    save_file({"a": torch.zeros(1)}, tmp_path / LAST)
    with pytest.raises(CheckpointError, match="not a checkpoint of this version"):
        load_checkpoint(tmp_path / LAST)


def test_the_optimizer_goes_on_exactly(tmp_path: Path) -> None:
    def fresh() -> tuple[torch.nn.Module, torch.optim.Optimizer, list[str]]:
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 3), torch.nn.PReLU(3)).to(memory_format=torch.channels_last)
        names = [name for name, _ in model.named_parameters()]
        return model, torch.optim.Adam(model.parameters(), 0.1, weight_decay=0.1, fused=True), names

    def steps(model: torch.nn.Module, optimizer: torch.optim.Optimizer, count: int) -> None:
        for _ in range(count):
            optimizer.zero_grad()
            model(torch.ones(1, 2, 4, 4)).square().sum().backward()
            optimizer.step()

    whole, optimizer, names = fresh()
    steps(whole, optimizer, 5)
    first, optimizer, names = fresh()
    steps(first, optimizer, 2)
    tensors = Checkpoint.join(model=first.state_dict(), optimizer=optimizer_tensors(optimizer, names))
    save_checkpoint(tmp_path / LAST, Checkpoint(tensors, {}))
    back = load_checkpoint(tmp_path / LAST)
    second, optimizer, names = fresh()
    second.load_state_dict(back.part("model"))
    restore_optimizer(optimizer, names, back.part("optimizer"))
    steps(second, optimizer, 3)
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), second.parameters(), strict=True))
    with pytest.raises(CheckpointError, match="optimizer state for other"):
        restore_optimizer(optimizer, names, {"other/step": torch.tensor(1.0)})
