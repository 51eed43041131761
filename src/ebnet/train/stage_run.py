"""The epochs of one stage: training steps, validation, checkpoints, and going on where an earlier process stopped."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from ebnet.errors import Interrupted
from ebnet.train.checkpoint import (
    BEST,
    LAST,
    PREVIOUS,
    Checkpoint,
    optimizer_tensors,
    restore_optimizer,
    save_checkpoint,
)
from ebnet.train.distributed import any_rank, barrier, rank
from ebnet.train.evaluation import Evaluation, evaluate
from ebnet.train.loop import Trainer
from ebnet.train.metrics import Meter, MetricsLog, collapsed
from ebnet.train.pictures import Pictures
from ebnet.train.progress import Reporter
from ebnet.train.results import StageResult
from ebnet.train.run_directory import RunDirectory
from ebnet.train.signals import StopRequest

OnEpoch = Callable[[dict[str, Any]], None]


@dataclass
class Position:
    """Where in a stage training stands, and what it has seen so far: all that is not weights, as JSON."""

    epoch: int = 0
    batch: int = 0
    step: int = 0
    meter: Meter = field(default_factory=Meter)
    """Of the epoch under way."""
    seconds: float = 0.0
    images: int = 0
    best_top1: float = -1.0
    best_epoch: int = -1
    metrics_position: int = 0
    result: dict[str, Any] | None = None
    """The stage's result, once it is finished."""

    @classmethod
    def from_state(cls, values: dict[str, Any]) -> "Position":
        return cls(**(values | {"meter": Meter(**values["meter"])}))


class StageRun:
    """One stage of a run under way."""

    def __init__(
        self,
        trainer: Trainer,
        pictures: Pictures,
        run: RunDirectory,
        log: MetricsLog,
        reporter: Reporter,
        stop: StopRequest,
        on_epoch: OnEpoch | None,
    ) -> None:
        self.trainer, self.pictures, self.run, self.log = trainer, pictures, run, log
        self.reporter, self.stop, self.on_epoch = reporter, stop, on_epoch
        self.recipe, self.stage, self.device = trainer.recipe, trainer.stage, trainer.device
        # A stage's order of pictures must differ from the stage's before it, and be the same after a restart.
        seed = self.recipe.seed * 4 + self.stage.number
        self.loader = pictures.training(trainer.settings.batch_size, seed)
        self.validation = pictures.validation()
        self.position = Position()
        self.directory = run.stage(self.stage.name)

    def complete(self, checkpoint: Checkpoint | None, metrics_start: int) -> Position:
        """Train to the end of the stage.

        Args:
            checkpoint: where to go on; None begins.
            metrics_start: where the stage's records begin in the metrics.
        """
        if checkpoint is None:
            self.position.metrics_position = metrics_start
        else:
            self._restore(checkpoint)
        if rank() == 0:
            self.log.rewind(self.position.metrics_position)
        at, epochs = self.position, self.trainer.settings.epochs
        self.reporter.stage_started(self.stage.name, at.step, epochs * len(self.loader))
        while at.epoch < epochs:
            self._train_epoch()
            self._finish_epoch(last=at.epoch == epochs - 1)
        self._save()
        return at

    def _train_epoch(self) -> None:
        at, log = self.position, self.recipe.log
        clock = time.perf_counter()
        for images, labels in self.loader.epoch(at.epoch, at.batch):
            terms = self.trainer.step(images, labels, at.step)
            at.meter.add(len(labels), **terms)
            at.step, at.batch, at.images = at.step + 1, at.batch + 1, at.images + self.trainer.settings.batch_size
            now = time.perf_counter()
            at.seconds, clock = at.seconds + now - clock, now
            self.reporter.stepped(at.step, self._log_step() if at.step % log.log_steps == 0 else None)
            stopping = any_rank(self.stop.signal is not None, self.device)
            if stopping or at.step % log.checkpoint_steps == 0:
                self._save()
            if stopping:
                raise Interrupted(
                    f"stopped and saved after step {at.step} of {self.stage.name}; run the same command to go on",
                    self.stop.signal or 15,
                )
            clock = time.perf_counter()

    def _finish_epoch(self, last: bool) -> None:
        at = self.position
        record = self._record("epoch")
        if last or (at.epoch + 1) % self.recipe.log.validate_epochs == 0:
            evaluation = self._evaluate()
            record["val"] = {"top1": evaluation.top1, "top5": evaluation.top5, "loss": evaluation.loss}
            record["usage"] = evaluation.usage
            warnings = collapsed(evaluation.usage, self.recipe.log.collapse)
            if warnings:
                record["warnings"] = warnings
                self.reporter.say(f"warning: {self.stage.name}: {'; '.join(warnings)}")
            if evaluation.top1 > at.best_top1:
                at.best_top1, at.best_epoch = evaluation.top1, at.epoch
                self._write(BEST, self._model_tensors())
            if last:
                at.result = self._result(evaluation).to_dict()
        self._write_record(record)
        self.reporter.epoch_finished(record)
        at.epoch, at.batch, at.meter = at.epoch + 1, 0, Meter()
        if self.on_epoch is not None:
            self.on_epoch(record)

    def _evaluate(self) -> Evaluation:
        channels_last = self.recipe.compute.channels_last
        return evaluate(self.trainer.network, self.validation, self.pictures.normalise, self.device, channels_last)

    def _log_step(self) -> dict[str, Any]:
        record = self._record("step")
        self._write_record(record)
        return record

    def _record(self, kind: str) -> dict[str, Any]:
        at = self.position
        return {
            "kind": kind,
            "stage": self.stage.name,
            "epoch": at.epoch,
            "step": at.step,
            "learning_rate": self.trainer.rate(at.step - 1),
            "images_per_second": self._speed(),
            "train": at.meter.averages(self.device),
        }

    def _write_record(self, record: dict[str, Any]) -> None:
        if rank() == 0:
            self.log.write(record)

    def _speed(self) -> float:
        return self.position.images / max(self.position.seconds, 1e-9)

    def _result(self, evaluation: Evaluation) -> StageResult:
        at = self.position
        return StageResult(
            name=self.stage.name,
            top1=evaluation.top1,
            top5=evaluation.top5,
            loss=evaluation.loss,
            usage=evaluation.usage,
            best_top1=at.best_top1,
            best_epoch=at.best_epoch,
            epochs=at.epoch + 1,
            steps=at.step,
            seconds=at.seconds,
            images_per_second=self._speed(),
        )

    def _save(self) -> None:
        at, trainer = self.position, self.trainer
        if rank() == 0:
            at.metrics_position = self.log.position()
            optimizer = {} if at.result else optimizer_tensors(trainer.optimizer, trainer.names)
            random = {} if at.result else {"torch": torch.get_rng_state()}
            tensors = self._model_tensors() | Checkpoint.join(optimizer=optimizer, random=random)
            self._write(LAST, tensors, keep=True)
            self.run.write_state(self.stage.name, self._state())
        barrier()

    def _write(self, name: str, tensors: dict[str, torch.Tensor], keep: bool = False) -> None:
        if rank() == 0:
            self.directory.mkdir(parents=True, exist_ok=True)
            kept = self.directory / PREVIOUS if keep else None
            save_checkpoint(self.directory / name, Checkpoint(tensors, self._state()), kept)

    def _model_tensors(self) -> dict[str, torch.Tensor]:
        return Checkpoint.join(model=self.trainer.network.state_dict())

    def _state(self) -> dict[str, Any]:
        network = self.trainer.network
        return {
            "stage": self.stage.name,
            "network": network.config.to_dict(),
            "precision": network.precision.value,
            "threads": torch.get_num_threads(),
            "position": asdict(self.position),
        }

    def _restore(self, checkpoint: Checkpoint) -> None:
        state, trainer = checkpoint.state, self.trainer
        self.position = Position.from_state(state["position"])
        trainer.network.load_state_dict(checkpoint.part("model"))
        restore_optimizer(trainer.optimizer, trainer.names, checkpoint.part("optimizer"))
        torch.set_rng_state(checkpoint.part("random")["torch"])
        if state["threads"] != torch.get_num_threads():
            self.reporter.say(
                f"{self.stage.name} goes on with {torch.get_num_threads()} threads instead of {state['threads']}: "
                "the result will be equal up to rounding, not bit by bit"
            )
