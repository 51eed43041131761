"""The paper's training policy from the first stage to the last, in a directory that any later call goes on in."""

from dataclasses import asdict
from pathlib import Path

import torch

from ebnet.data import Dataset
from ebnet.models.network import ExpertBinaryNetwork
from ebnet.train.allocator import keep_freed_memory
from ebnet.train.checkpoint import LAST, Checkpoint, load_newest, save_checkpoint
from ebnet.train.distributed import barrier, part_of_batch, pick_device, process_group, rank
from ebnet.train.evaluation import Evaluation, evaluate
from ebnet.train.loop import Trainer
from ebnet.train.metrics import MetricsLog
from ebnet.train.pictures import Pictures
from ebnet.train.progress import Reporter
from ebnet.train.recipe import Overrides, Recipe, StageName, load_recipe
from ebnet.train.results import RunResult, StageResult
from ebnet.train.run_directory import RunDirectory
from ebnet.train.signals import StopRequest
from ebnet.train.stage_run import OnEpoch, Position, StageRun
from ebnet.train.stages import STAGES, Stage, load_ready, load_stage, network_of, start_network


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
    recipe = _resolved(recipe, overrides, data)
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
        with run.claimed(recipe), StopRequest() as stop, torch.random.fork_rng():
            log = MetricsLog(run.metrics, run.path / "tensorboard" if tensorboard and rank() == 0 else None)
            try:
                return _Pipeline(recipe, run, pictures, device, log, reporter, stop, on_epoch).complete()
            finally:
                log.close()


def _resolved(recipe: Recipe | str | Path, overrides: Overrides, data: str | Path | None) -> Recipe:
    recipe = recipe.changed(overrides) if isinstance(recipe, Recipe) else load_recipe(recipe, overrides)
    # Absolute, because the run may be evaluated from another directory.
    return recipe if data is None else recipe.changed({"data.root": str(Path(data).expanduser().resolve())})


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
        results: dict[str, StageResult] = {}
        network: ExpertBinaryNetwork | None = None
        metrics_start = 0
        for name in self.recipe.stages:
            network, position = self._stage(STAGES[name], network, metrics_start)
            assert position.result is not None
            results[name] = StageResult.from_dict(position.result)
            metrics_start = position.metrics_position
            self.reporter.stage_finished(results[name])
        final = self._final(network) if "stage2" in results else None
        result = RunResult(self.run.path, results, final)
        self.reporter.finished(result)
        return result

    def _stage(
        self, stage: Stage, before: ExpertBinaryNetwork | None, metrics_start: int
    ) -> tuple[ExpertBinaryNetwork, Position]:
        """The network at the end of a stage: trained, given, or finished in an earlier call."""
        checkpoint = load_newest(self.run.stage(stage.name), self.reporter.say)
        if checkpoint is not None:
            position = Position.from_state(checkpoint.state["position"])
            if position.result is not None:
                return network_of(checkpoint), position
        config = stage.config(self.recipe, self.pictures.val.num_classes, self.pictures.val.channels)
        table = self.recipe.table(stage.name)
        if table.checkpoint is not None:
            return self._given(stage, load_ready(table.checkpoint, stage, config), table.checkpoint, metrics_start)
        network = start_network(config, stage, before, self.recipe.seed)
        trainer = Trainer(
            network,
            self._teacher(table.distill_from),
            stage,
            self.recipe,
            self.pictures.steps_per_epoch(self.recipe.settings(stage.name).batch_size),
            self.pictures.normalise,
            self.device,
        )
        stage_run = StageRun(trainer, self.pictures, self.run, self.log, self.reporter, self.stop, self.on_epoch)
        position = stage_run.complete(checkpoint, metrics_start)
        return trainer.network.cpu(), position

    def _teacher(self, name: StageName | None) -> ExpertBinaryNetwork | None:
        return None if name is None else load_stage(self.run.path, name)

    def _given(
        self, stage: Stage, network: ExpertBinaryNetwork, source: str, metrics_start: int
    ) -> tuple[ExpertBinaryNetwork, Position]:
        """A network given in place of a stage: judged, and kept with the run like a trained one."""
        network = network.to(self.device)
        judged = evaluate(network, self.pictures.validation(), self.pictures.normalise, self.device)
        position = Position(metrics_position=metrics_start, result=_given_result(stage, judged, source).to_dict())
        state = {
            "stage": stage.name,
            "network": network.config.to_dict(),
            "precision": network.precision.value,
            "threads": torch.get_num_threads(),
            "position": asdict(position),
        }
        if rank() == 0:
            directory = self.run.stage(stage.name)
            directory.mkdir(parents=True, exist_ok=True)
            save_checkpoint(directory / LAST, Checkpoint(Checkpoint.join(model=network.state_dict()), state))
            self.run.write_state(stage.name, state)
        barrier()
        return network.cpu(), position

    def _final(self, network: ExpertBinaryNetwork | None) -> Path:
        if rank() == 0 and network is not None and not self.run.final.exists():
            self.run.write_final(network, self.pictures.preprocessing(), list(self.pictures.val.classes))
        barrier()
        return self.run.final


def _given_result(stage: Stage, judged: Evaluation, source: str) -> StageResult:
    return StageResult(
        name=stage.name,
        top1=judged.top1,
        top5=judged.top5,
        loss=judged.loss,
        usage=judged.usage,
        best_top1=judged.top1,
        best_epoch=-1,
        epochs=0,
        steps=0,
        seconds=0.0,
        images_per_second=0.0,
        source=source,
    )
