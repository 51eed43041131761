"""The paper's training policy from the first stage to the last, in a directory that any later call goes on in."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor

from ebnet.data import Dataset
from ebnet.errors import Interrupted
from ebnet.models.network import ExpertBinaryNetwork
from ebnet.recipe.phases import PhaseName
from ebnet.recipe.settings import Overrides, Recipe, load_recipe
from ebnet.runs.checkpoint import Checkpoint
from ebnet.runs.directory import RunDirectory, load_phase
from ebnet.runs.final import write_final
from ebnet.runs.metrics import MetricsLog
from ebnet.runs.phase import network_of
from ebnet.runs.results import PhaseResult, RunResult
from ebnet.runs.starts import note_start
from ebnet.runs.state import PhaseState, Position
from ebnet.train.allocator import keep_freed_memory
from ebnet.train.beginning import IMAGES as STATISTICS
from ebnet.train.beginning import begin_with, retake_statistics
from ebnet.train.distributed import any_rank, barrier, part_of_batch, pick_device, process_group, rank
from ebnet.train.evaluation import Evaluation, evaluate
from ebnet.train.fitting import fitted
from ebnet.train.gate_start import IMAGES as CLUSTERED
from ebnet.train.gate_start import has_equal_experts, start_gates_from_clusters
from ebnet.train.given import load_given
from ebnet.train.loop import Trainer
from ebnet.train.outside_teacher import outside_logits
from ebnet.train.phase_run import OnEpoch, PhaseRun, state_of
from ebnet.train.phases import PHASES, Phase, start_network
from ebnet.train.pictures import Pictures
from ebnet.train.progress import Reporter
from ebnet.train.signals import StopRequest


def train(
    recipe: Recipe | str | Path,
    out: str | Path,
    *,
    overrides: Overrides = (),
    data: str | Path | None = None,
    datasets: tuple[Dataset, Dataset] | None = None,
    tensorboard: bool = False,
    reporter: Reporter | None = None,
    on_epoch: OnEpoch | None = None,
) -> RunResult:
    """Run the stages of a recipe in the directory `out`; where it already holds part of that run, go on.

    Args:
        recipe: a recipe, the name of a shipped one, or a TOML file.
        overrides: settings to change, `{"schedule.epochs": 3}` or `["schedule.epochs=3"]`.
        data: the directory of the data set, where the recipe does not say.
        datasets: training and validation set, already open: saves opening them anew for each of many short runs.
        tensorboard: also write RUN/tensorboard.
        reporter: who hears of progress; nobody, unless told.
        on_epoch: called with each epoch's record (as in metrics.jsonl) after it is written; may raise to stop the run.

    Raises:
        Interrupted: SIGINT or SIGTERM came; the run is saved and the same call goes on.
        NonFiniteError: the loss became NaN or infinite.
    """
    recipe = resolved(recipe, overrides, data)
    device = pick_device(recipe.compute.device)
    keep_freed_memory()
    if recipe.compute.threads:
        torch.set_num_threads(recipe.compute.threads)
    run = RunDirectory(out)
    with process_group(device):
        for name in recipe.stages:
            part_of_batch(recipe.settings(name).batch_size, recipe.compute.accumulation)
        pictures = Pictures.open(recipe.data, datasets)
        reporter = reporter if reporter is not None and rank() == 0 else Reporter()
        with _claimed(run, recipe), StopRequest() as stop, torch.random.fork_rng():
            log = MetricsLog(run.metrics, run.tensorboard if tensorboard and rank() == 0 else None)
            try:
                return _Pipeline(recipe, run, pictures, device, log, reporter, stop, on_epoch).complete()
            finally:
                log.close()


@contextmanager
def _claimed(run: RunDirectory, recipe: Recipe) -> Iterator[None]:
    """The run for all processes of the training: the first one claims it, the others wait until it has."""
    if rank() > 0:
        barrier()
        yield
        return
    with run.claimed(recipe):
        if not run.final.is_dir():
            note_start(run.path)
        barrier()
        yield


def resolved(recipe: Recipe | str | Path, overrides: Overrides, data: str | Path | None) -> Recipe:
    """The recipe with changes, and with what it leaves to the images decided."""
    recipe = recipe.changed(overrides) if isinstance(recipe, Recipe) else load_recipe(recipe, overrides)
    # Absolute, because the run may be evaluated from another directory.
    return fitted(recipe if data is None else recipe.changed({"data.root": str(Path(data).expanduser().resolve())}))


class _Pipeline:
    def __init__(
        self,
        recipe: Recipe,
        run: RunDirectory,
        pictures: Pictures,
        device: torch.device,
        log: MetricsLog,
        reporter: Reporter,
        stop: StopRequest,
        on_epoch: OnEpoch | None,
    ) -> None:
        self.recipe, self.run, self.pictures, self.device = recipe, run, pictures, device
        self.log, self.reporter, self.stop, self.on_epoch = log, reporter, stop, on_epoch

    def complete(self) -> RunResult:
        results: dict[PhaseName, PhaseResult] = {}
        network: ExpertBinaryNetwork | None = None
        metrics_start = 0
        for name in self.recipe.stages:
            network, position = self._phase(PHASES[name], network, metrics_start)
            assert position.result is not None
            results[name] = position.result
            metrics_start = position.metrics_position
            self.reporter.phase_finished(results[name])
        final = self._final(network) if "stage2" in results else None
        result = RunResult(self.run.path, results, final)
        self.reporter.finished(result)
        return result

    def _phase(
        self, phase: Phase, before: ExpertBinaryNetwork | None, metrics_start: int
    ) -> tuple[ExpertBinaryNetwork, Position]:
        """The network at the end of a phase: trained, given, or finished in an earlier call."""
        checkpoint = self.run.phase(phase.name).newest(self.reporter.say)
        if checkpoint is not None:
            position = PhaseState.from_dict(checkpoint.state).position
            if position.result is not None:
                return network_of(checkpoint), position
        config = phase.config(self.recipe, self.pictures.val.num_classes, self.pictures.val.channels)
        table = self.recipe.table(phase.name)
        if table.checkpoint is not None:
            return self._given(
                phase, load_given(table.checkpoint, phase, config, self.reporter.say), table.checkpoint, metrics_start
            )
        seed = self.recipe.seed_of(phase.name)
        if table.start is not None:
            network = begin_with(table.start, config, phase, seed)
            if checkpoint is None:
                images, _ = self.pictures.sample(self.pictures.train, STATISTICS, divided=True)
                retake_statistics(network.to(self.device), self._pixels(images))
        else:
            network = start_network(config, phase, before, seed)
        if checkpoint is None and self.recipe.routing.gate_start == "clusters" and has_equal_experts(network):
            images, _ = self.pictures.sample(self.pictures.train, CLUSTERED, divided=True)
            start_gates_from_clusters(network.to(self.device), self._pixels(images), seed)
        trainer = Trainer(
            network,
            self._teacher(table.distill_from),
            phase,
            self.recipe,
            self.pictures.steps_per_epoch(self.recipe.settings(phase.name).batch_size),
            self.pictures.normalise,
            self.device,
        )
        phase_run = PhaseRun(trainer, self.pictures, self.run, self.log, self.reporter, self.stop, self.on_epoch)
        position = phase_run.complete(checkpoint, metrics_start, self._opinions())
        return trainer.network.cpu(), position

    def _pixels(self, images: Tensor) -> Tensor:
        return self.pictures.normalise.tensor(images.to(self.device), self.recipe.compute.channels_last)

    def _teacher(self, name: PhaseName | None) -> ExpertBinaryNetwork | None:
        return None if name is None else load_phase(self.run.path, name)

    def _opinions(self) -> Tensor | None:
        """The logits of the teacher from outside for every training image, where the recipe has one."""
        settings = self.recipe.distillation
        if settings.teacher is None:
            return None
        dataset = self.pictures.train

        def looked(images: int) -> None:
            self.reporter.stepped(images, None)
            if any_rank(self.stop.signal is not None, self.device):
                raise Interrupted(
                    f"stopped while {settings.teacher} looked at the images; run the same command to begin with that "
                    "again",
                    self.stop.signal or 15,
                )

        file = self.run.teacher_logits
        if not file.exists():
            self.reporter.phase_started(f"{settings.teacher} looks at the training images", 0, len(dataset))
        return outside_logits(settings.teacher, settings.teacher_side, dataset, file, self.device, looked)

    def _given(
        self, phase: Phase, network: ExpertBinaryNetwork, source: str, metrics_start: int
    ) -> tuple[ExpertBinaryNetwork, Position]:
        """A network given in place of a phase: evaluated, and kept with the run like a trained one."""
        network = network.to(self.device)
        found = evaluate(network, self.pictures.validation(), self.pictures.normalise, self.device)
        position = Position(metrics_position=metrics_start, result=_given_result(phase, found, source))
        if rank() == 0:
            tensors = Checkpoint.join(model=network.state_dict())
            self.run.phase(phase.name).save_last(tensors, state_of(phase, network, position))
        barrier()
        return network.cpu(), position

    def _final(self, network: ExpertBinaryNetwork | None) -> Path:
        if rank() == 0 and network is not None and not self.run.final.exists():
            write_final(self.run.path, network, self.pictures.preprocessing(), list(self.pictures.val.classes))
        barrier()
        return self.run.final


def _given_result(phase: Phase, found: Evaluation, source: str) -> PhaseResult:
    return PhaseResult(
        name=phase.name,
        **found.to_dict(),
        best_top1=found.top1,
        best_epoch=-1,
        epochs=0,
        steps=0,
        seconds=0.0,
        images_per_second=0.0,
        source=source,
    )
