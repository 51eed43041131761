"""The epochs of one phase: training steps, validation, checkpoints, and going on where an earlier process stopped."""

import time
from collections.abc import Callable
from typing import Any

import torch

from ebnet.errors import Interrupted
from ebnet.models.network import ExpertBinaryNetwork
from ebnet.runs.checkpoint import Checkpoint, optimizer_tensors, restore_optimizer
from ebnet.runs.directory import RunDirectory
from ebnet.runs.metrics import MetricsLog
from ebnet.runs.results import PhaseResult
from ebnet.runs.state import Meter, PhaseState, Position
from ebnet.train.distributed import any_rank, barrier, rank
from ebnet.train.evaluation import Evaluation, evaluate
from ebnet.train.gate_start import expert_layers
from ebnet.train.loop import Trainer
from ebnet.train.metrics import averages, collapsed
from ebnet.train.phases import Phase
from ebnet.train.pictures import Pictures
from ebnet.train.progress import Reporter
from ebnet.train.routing_watch import IMAGES as WATCHED
from ebnet.train.routing_watch import RoutingWatch, advice, as_record
from ebnet.train.signals import StopRequest

OnEpoch = Callable[[dict[str, Any]], None]


class PhaseRun:
    """One phase of a run under way."""

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
        self.recipe, self.phase, self.device = trainer.recipe, trainer.phase, trainer.device
        self.loader = pictures.training(trainer.settings.batch_size, self.recipe.seed_of(self.phase.name))
        self.validation = pictures.validation()
        self.watch = self._make_watch()
        self.position = Position()
        self.directory = run.phase(self.phase.name)
        self.said = False

    def complete(
        self, checkpoint: Checkpoint | None, metrics_start: int, opinions: torch.Tensor | None = None
    ) -> Position:
        """Train to the end of the phase.

        Args:
            checkpoint: where to go on; None begins.
            metrics_start: where the phase's records begin in the metrics.
            opinions: the logits of a teacher from outside for every training image.
        """
        if checkpoint is None:
            self.position.metrics_position = metrics_start
            if self.watch is not None and not self.phase.precision.binary_weights:
                # What the first epoch's churn is told against. Right after weights have become binary the batch norms
                # still hold the statistics of real ones: what gates then say without training is no beginning.
                self.watch.look()
        else:
            self._restore(checkpoint)
        if rank() == 0:
            self.log.rewind(self.position.metrics_position)
        at, epochs = self.position, self.trainer.settings.epochs
        self.reporter.phase_started(self.phase.name, at.step, epochs * len(self.loader))
        while at.epoch < epochs:
            self._train_epoch(opinions)
            self._finish_epoch(last=at.epoch == epochs - 1)
        self._save()
        return at

    def _train_epoch(self, opinions: torch.Tensor | None) -> None:
        at, log = self.position, self.recipe.log
        clock = time.perf_counter()
        batches = zip(self.loader.epoch(at.epoch, at.batch), self.loader.indices(at.epoch, at.batch), strict=True)
        for (images, labels), indices in batches:
            which = torch.from_numpy(indices)
            said = None if opinions is None else opinions[which]
            terms = self.trainer.step(images, labels, at.step, said, which)
            self._say_what_is_slow()
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
                    f"stopped and saved after step {at.step} of {self.phase.name}; run the same command to go on",
                    self.stop.signal or 15,
                )
            clock = time.perf_counter()

    def _say_what_is_slow(self) -> None:
        """Once: the units that a CPU trains through torch, and why."""
        if self.said or self.device.type != "cpu":
            return
        self.said = True
        for reason, names in self.trainer.network.through_torch().items():
            more = f" and {len(names) - 1} more units" if len(names) > 1 else ""
            self.reporter.say(f"{self.phase.name}: {names[0]}{more} through torch ({reason})")

    def _finish_epoch(self, last: bool) -> None:
        at = self.position
        record = self._record("epoch")
        warnings: list[str] = []
        if last or (at.epoch + 1) % self.recipe.log.validate_epochs == 0:
            evaluation = self._evaluate()
            record["val"] = {"top1": evaluation.top1, "top5": evaluation.top5, "loss": evaluation.loss}
            record["usage"] = evaluation.usage
            warnings += collapsed(evaluation.usage, self.recipe.log.collapse)
            if evaluation.top1 > at.best_top1:
                at.best_top1, at.best_epoch = evaluation.top1, at.epoch
                self._save_best()
            if last:
                at.result = self._result(evaluation)
        if self.watch is not None:
            record["routing"] = as_record(self.watch.look())
            warnings += advice(record["routing"], self.recipe.routing, self.recipe.log.churn, last)
        if warnings:
            record["warnings"] = warnings
            self.reporter.say(f"warning: {self.phase.name}: {'; '.join(warnings)}")
        self._write_record(record)
        self.reporter.epoch_finished(record)
        at.epoch, at.batch, at.meter = at.epoch + 1, 0, Meter()
        if self.on_epoch is not None:
            self.on_epoch(record)

    def _evaluate(self) -> Evaluation:
        channels_last = self.recipe.compute.channels_last
        return evaluate(self.trainer.network, self.validation, self.pictures.normalise, self.device, channels_last)

    def _make_watch(self) -> RoutingWatch | None:
        if not expert_layers(self.trainer.network):
            return None
        images, _ = self.pictures.sample(self.pictures.val, WATCHED)
        pixels = self.pictures.normalise.tensor(images.to(self.device), self.recipe.compute.channels_last)
        return RoutingWatch(self.trainer.network, pixels)

    def _log_step(self) -> dict[str, Any]:
        record = self._record("step")
        self._write_record(record)
        return record

    def _record(self, kind: str) -> dict[str, Any]:
        at = self.position
        return {
            "kind": kind,
            "stage": self.phase.name,
            "epoch": at.epoch,
            "step": at.step,
            "learning_rate": self.trainer.rate(at.step - 1),
            "images_per_second": self._speed(),
            "train": averages(at.meter, self.device),
        }

    def _write_record(self, record: dict[str, Any]) -> None:
        if rank() == 0:
            self.log.write(record)

    def _speed(self) -> float:
        return self.position.images / max(self.position.seconds, 1e-9)

    def _result(self, evaluation: Evaluation) -> PhaseResult:
        at = self.position
        return PhaseResult(
            name=self.phase.name,
            **evaluation.to_dict(),
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
            choices = {} if at.result or self.watch is None else self.watch.choices
            tensors = self._model_tensors() | Checkpoint.join(optimizer=optimizer, random=random, choices=choices)
            self.directory.save_last(tensors, self._state())
        barrier()

    def _save_best(self) -> None:
        if rank() == 0:
            self.directory.save_best(self._model_tensors(), self._state())

    def _model_tensors(self) -> dict[str, torch.Tensor]:
        return Checkpoint.join(model=self.trainer.network.state_dict())

    def _state(self) -> PhaseState:
        return state_of(self.phase, self.trainer.network, self.position)

    def _restore(self, checkpoint: Checkpoint) -> None:
        state, trainer = PhaseState.from_dict(checkpoint.state), self.trainer
        self.position = state.position
        trainer.network.load_state_dict(checkpoint.part("model"))
        restore_optimizer(trainer.optimizer, trainer.names, checkpoint.part("optimizer"))
        torch.set_rng_state(checkpoint.part("random")["torch"])
        if self.watch is not None:
            self.watch.choices = checkpoint.part("choices")
        if state.threads != torch.get_num_threads():
            self.reporter.say(
                f"{self.phase.name} goes on with {torch.get_num_threads()} threads instead of {state.threads}: "
                "the result will be equal up to rounding, not bit by bit"
            )


def state_of(phase: Phase, network: ExpertBinaryNetwork, position: Position) -> PhaseState:
    return PhaseState(phase.name, network.config, network.precision.value, torch.get_num_threads(), position)
