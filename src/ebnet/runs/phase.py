"""RUN/stages/<n>-<name>: the checkpoints of one phase and, for people and other programs, its state as JSON."""

import json
from collections.abc import Callable
from pathlib import Path

from torch import Tensor

from ebnet.errors import CheckpointError
from ebnet.files import explained, write_atomically
from ebnet.models.network import ExpertBinaryNetwork
from ebnet.nn import Precision
from ebnet.runs.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from ebnet.runs.state import PhaseState

LAST, PREVIOUS, BEST, STATE = "last.safetensors", "previous.safetensors", "best.safetensors", "state.json"


class PhaseDirectory:
    """What a phase leaves behind: last, previous and best checkpoint, and the state of the last."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.last, self.previous, self.best = path / LAST, path / PREVIOUS, path / BEST

    @property
    def begun(self) -> bool:
        """Whether there is a checkpoint to go on from."""
        return self.last.exists() or self.previous.exists()

    def newest(self, say: Callable[[str], None] = lambda message: None) -> Checkpoint | None:
        """The last checkpoint; if that is damaged or gone the one before it, said aloud; None if there is none."""
        faults: list[CheckpointError] = []
        for path in (self.last, self.previous):
            if not path.exists():
                continue
            try:
                checkpoint = load_checkpoint(path)
            except CheckpointError as error:
                faults.append(error)
                continue
            if faults:
                say(f"{faults[0]}; going on from {path}, which is whole")
            return checkpoint
        if faults:
            raise CheckpointError(
                f"{'; '.join(map(str, faults))}. No whole checkpoint is left in {self.path}: remove that directory to "
                "train the stage anew"
            )
        return None

    def state(self) -> PhaseState | None:
        """Of the last checkpoint, without its tensors; None if there is none yet."""
        path = self.path / STATE
        try:
            return PhaseState.from_dict(json.loads(path.read_text()))
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, OSError) as error:
            raise CheckpointError(f"{path} is damaged: {error!r}") from error

    def save_last(self, tensors: dict[str, Tensor], state: PhaseState) -> None:
        """Replace the last checkpoint; the one so far stays as `previous`."""
        self._make()
        save_checkpoint(self.last, Checkpoint(tensors, state.to_dict()), self.previous)
        write_atomically(self.path / STATE, (json.dumps(state.to_dict(), indent=2) + "\n").encode())

    def save_best(self, tensors: dict[str, Tensor], state: PhaseState) -> None:
        self._make()
        save_checkpoint(self.best, Checkpoint(tensors, state.to_dict()))

    def _make(self) -> None:
        with explained(self.path):
            self.path.mkdir(parents=True, exist_ok=True)


def network_of(checkpoint: Checkpoint) -> ExpertBinaryNetwork:
    """The network a checkpoint holds."""
    state = PhaseState.from_dict(checkpoint.state)
    network = ExpertBinaryNetwork(state.network, Precision(state.precision))
    network.load_state_dict(checkpoint.part("model"))
    return network
