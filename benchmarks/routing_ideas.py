"""Which ways of routing make four experts pay: one short run an idea, all from the same network of one expert.

    python benchmarks/routing_ideas.py --data CIFAR10-FOLDERS --work DIRECTORY [--out FILE] [IDEA ...]

Every run has the same images in the same order, the same number of epochs of Stage I and, apart from the idea, the
settings of the recipe. `one` goes on with one expert: what experts have to beat. `paper` is the paper's routing, `ours`
that of `[routing]`; other ideas are added to ours, unless their name says `alone`. Ideas that are no setting of the
recipe live here; results/pilots says which of them were tried so far. The file is written after each run; a second
call goes on with what is missing, and prints what is there: mean accuracies, and the mean difference from one expert
with its standard error.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import torch
from torch import Tensor, nn

from cpu import cpu_name
from ebnet.files import write_atomically
from ebnet.models.network import ExpertBinaryNetwork
from ebnet.recipe.settings import Recipe, load_recipe
from ebnet.train.distributed import pick_device
from ebnet.train.evaluation import evaluate
from ebnet.train.gate_start import IMAGES, expert_layers, gate_inputs, start_gates_from_clusters
from ebnet.train.loop import Trainer
from ebnet.train.phases import PHASES, start_network
from ebnet.train.pictures import Pictures
from ebnet.train.routing_watch import IMAGES as WATCHED
from ebnet.train.routing_watch import RoutingWatch, as_record, mean_churn

OURS = {"routing.gate_start": "clusters", "routing.gate_rate": 0.1, "routing.coupling": 1.0}
PAPER = {"routing.gate_start": "random", "routing.gate_rate": 1.0, "routing.coupling": 0.0}
TRAINING_IMAGES = 5000


@dataclass(frozen=True)
class Idea:
    changes: dict[str, Any] = field(default_factory=dict)
    begin: Callable[[Trainer, Tensor], None] | None = None
    """What is done to the trainer before the first step, given some training images."""
    after_step: Callable[[Trainer, float], None] | None = None
    """What is done after each step, given the share of the phase that is over."""


def standardised(trainer: Trainer, pixels: Tensor) -> None:
    """The gate sees (m - mu) / sd instead of m: its weights are rescaled, so that it begins as the same gate."""

    class Standardised(nn.Linear):
        def forward(self, m: Tensor) -> Tensor:
            return super().forward((m - self.mu) / self.sd)

    with torch.no_grad():
        for (_, layer), means in zip(
            expert_layers(trainer.network).items(), gate_inputs(trainer.network, pixels).values(), strict=True
        ):
            linear = layer.gate.linear
            mu, sd = means.mean(0), means.std(0).clamp(min=1e-6)
            linear.bias += linear.weight @ mu
            linear.weight *= sd
            linear.mu, linear.sd = mu, sd
            linear.__class__ = Standardised


def noisy(trainer: Trainer, pixels: Tensor) -> None:
    """Scores with noise of half their spread in training; `noise_fades` lets it fall to 0 at half of the phase."""
    for layer in expert_layers(trainer.network).values():
        layer.gate.noise = 0.5
        layer.gate.linear.register_forward_hook(_add_noise(layer.gate))


def _add_noise(gate: Any) -> Callable[[nn.Module, Any, Tensor], Tensor]:
    return lambda module, inputs, scores: (
        scores + gate.noise * torch.randn_like(scores) if gate.training and gate.noise > 0 else scores
    )


def noise_fades(trainer: Trainer, over: float) -> None:
    for layer in expert_layers(trainer.network).values():
        layer.gate.noise = 0.5 * max(0.0, 1.0 - 2 * over)


@torch.no_grad()
def balanced(trainer: Trainer, over: float) -> None:
    """Auxiliary-loss-free balancing (Wang et al. 2024): the bias of an expert with too few images rises a little."""
    for layer in expert_layers(trainer.network).values():
        share = torch.bincount(layer.last_experts, minlength=layer.num_experts) / len(layer.last_experts)
        layer.gate.linear.bias += 1e-3 * torch.sign(1 / layer.num_experts - share)


def decayed_gates(trainer: Trainer, pixels: Tensor) -> None:
    trainer.optimizer.param_groups[1]["weight_decay"] = 1e-2


def kept_moments(trainer: Trainer, pixels: Tensor) -> None:
    """Adam's averages at the end of the phase of one expert, repeated for each expert; gates have none."""
    before = trainer.moments  # type: ignore[attr-defined]
    by_name = dict(trainer.network.named_parameters())
    for name, state in before.items():
        parameter = by_name[name]
        repeats = [parameter.shape[0] // state["exp_avg"].shape[0]] + [1] * (parameter.dim() - 1)
        trainer.optimizer.state[parameter] = {
            "step": state["step"].clone(),
            "exp_avg": state["exp_avg"].repeat(repeats),
            "exp_avg_sq": state["exp_avg_sq"].repeat(repeats),
        }


IDEAS = {
    "one": Idea({"network.experts": 1}),
    "paper": Idea(PAPER),
    "ours": Idea(),
    "coupling alone": Idea(PAPER | {"routing.coupling": 1.0}),
    "clusters alone": Idea(PAPER | {"routing.gate_start": "clusters"}),
    "gate rate alone": Idea(PAPER | {"routing.gate_rate": 0.1}),
    "coupling to 60 %": Idea({"routing.coupling_end": 0.6}),
    "coupling 0.25": Idea({"routing.coupling": 0.25}),
    "gate rate 0.02": Idea({"routing.gate_rate": 0.02}),
    "gate rate 0.5": Idea({"routing.gate_rate": 0.5}),
    "temperature 0.25": Idea({"network.temperature": 0.25}),
    "temperature 4": Idea({"network.temperature": 4.0}),
    "standardised input": Idea(begin=standardised),
    "noise to half": Idea(begin=noisy, after_step=noise_fades),
    "balancing": Idea(after_step=balanced),
    "decay of gates": Idea(begin=decayed_gates),
    "moments kept": Idea(begin=kept_moments),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ideas", nargs="*", choices=[[], *IDEAS], help="all, unless named")
    parser.add_argument("--data", required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("results/pilots/ideas.json"))
    parser.add_argument("--recipe", default="evidence")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--seeds", type=int, default=3, help="of pilots: 0, 1, ..., which no claim is tried with")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    arguments = parser.parse_args()
    changes = {"data.root": arguments.data, "schedule.epochs": arguments.epochs} | OURS
    recipe = load_recipe(arguments.recipe, changes).changed(arguments.set)
    torch.set_num_threads(1)
    pictures = Pictures.open(recipe.data)
    told = {"recipe": _without_place(recipe), "cpu": cpu_name(), "ideas": {}}
    if arguments.out.exists():
        told["ideas"] = json.loads(arguments.out.read_text())["ideas"]
    for seed in range(arguments.seeds):
        seeded = recipe.changed({"seed": seed})
        for name in arguments.ideas or IDEAS:
            runs = told["ideas"].setdefault(name, {})
            if str(seed) not in runs:
                first = _first_phase(seeded, pictures, arguments.work)
                runs[str(seed)] = _tried(IDEAS[name], seeded, pictures, first)
                arguments.out.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(arguments.out, (json.dumps(told, indent=1) + "\n").encode())
                print(f"seed {seed}: {name}: {runs[str(seed)]['val']:.2%}", flush=True)
    print(f"{'':20} {'train':>7} {'val':>7}  against one expert, train and val; churn, mean of the epochs")
    for name, runs in told["ideas"].items():
        _print_row(name, runs, told["ideas"].get("one", {}))


def _print_row(name: str, runs: dict[str, Any], one: dict[str, Any]) -> None:
    cells = [f"{100 * mean(run[kind] for run in runs.values()):7.2f}" for kind in ("train", "val")]
    for kind in ("train", "val"):
        paired = [100 * (run[kind] - one[seed][kind]) for seed, run in runs.items() if seed in one]
        error = f" ± {stdev(paired) / len(paired) ** 0.5:.2f}" if len(paired) > 1 else ""
        cells.append(f" {mean(paired):+.2f}{error}" if paired else "")
    churn = [mean(run["churn"]) for run in runs.values() if run["churn"]]
    print(f"{name:20}", *cells, f" {mean(churn):.0%}" if churn else "", flush=True)


def _without_place(recipe: Recipe) -> dict[str, Any]:
    values = recipe.model_dump(mode="json", exclude_none=True)
    values["data"].pop("root")
    return values


def _first_phase(recipe: Recipe, pictures: Pictures, work: Path) -> dict[str, Any]:
    """One expert, trained once, with the optimizer's averages, and kept."""
    file = work / f"one-expert-{recipe.seed}.pt"
    if not file.exists():
        trainer = _trainer(recipe.changed({"network.experts": 1}), pictures, None, "stage1-one-expert")
        _train(trainer, pictures, Idea())
        names = dict(zip(trainer.names, trainer.optimizer.param_groups[0]["params"], strict=True))
        moments = {name: dict(trainer.optimizer.state[parameter]) for name, parameter in names.items()}
        work.mkdir(parents=True, exist_ok=True)
        kept = {"model": trainer.network.state_dict(), "moments": moments, "accuracy": _accuracy(trainer, pictures)}
        torch.save(kept, file)
    kept = torch.load(file, weights_only=True)
    return dict(kept)


def _trainer(
    recipe: Recipe, pictures: Pictures, before: ExpertBinaryNetwork | None, phase: str, first: Any = None
) -> Trainer:
    stage = PHASES[phase]  # type: ignore[index]
    config = stage.config(recipe, pictures.val.num_classes, pictures.val.channels)
    network = start_network(config, stage, before, recipe.seed_of(stage.name))
    if recipe.routing.gate_start == "clusters" and expert_layers(network):
        pixels = pictures.normalise.tensor(pictures.sample(pictures.train, IMAGES)[0])
        start_gates_from_clusters(network, pixels, recipe.seed_of(stage.name))
    steps = pictures.steps_per_epoch(recipe.schedule.batch_size)
    return Trainer(network, None, stage, recipe, steps, pictures.normalise, pick_device("cpu"))


def _tried(idea: Idea, recipe: Recipe, pictures: Pictures, first: dict[str, Any]) -> dict[str, Any]:
    recipe = recipe.changed(idea.changes)
    one = PHASES["stage1-one-expert"]
    before = ExpertBinaryNetwork(one.config(recipe, pictures.val.num_classes, pictures.val.channels), one.precision)
    before.load_state_dict(first["model"])
    trainer = _trainer(recipe, pictures, before, "stage1-experts")
    trainer.moments = first["moments"]  # type: ignore[attr-defined]
    start = time.process_time()
    churn = _train(trainer, pictures, idea)
    seconds = round(time.process_time() - start)
    return _accuracy(trainer, pictures) | {"churn": churn, "cpu_seconds": seconds}


def _train(trainer: Trainer, pictures: Pictures, idea: Idea) -> list[float]:
    """All epochs of the phase; the churn of each."""
    recipe, phase = trainer.recipe, trainer.phase
    if idea.begin is not None:
        idea.begin(trainer, pictures.normalise.tensor(pictures.sample(pictures.train, IMAGES)[0]))
    watch = RoutingWatch(trainer.network, pictures.normalise.tensor(pictures.sample(pictures.val, WATCHED)[0]))
    watch.look()
    loader = pictures.training(trainer.settings.batch_size, recipe.seed_of(phase.name))
    steps, step, churn = trainer.settings.epochs * len(loader), 0, []
    for epoch in range(trainer.settings.epochs):
        for images, labels in loader.epoch(epoch):
            trainer.step(images, labels, step)
            step += 1
            if idea.after_step is not None:
                idea.after_step(trainer, step / steps)
        moved = mean_churn(as_record(watch.look()))
        churn += [] if moved is None else [round(moved, 4)]
    return churn


def _accuracy(trainer: Trainer, pictures: Pictures) -> dict[str, Any]:
    network = trainer.network
    with _evaluated(network), torch.no_grad():
        images, labels = pictures.sample(pictures.train, TRAINING_IMAGES)
        guesses = [network(pictures.normalise.tensor(part)).argmax(1) for part in images.split(250)]
        right = mean((torch.cat(guesses) == labels).double().tolist())
        seen = evaluate(network, pictures.validation(), pictures.normalise, trainer.device)
    return {"train": right, "val": seen.top1}


@contextmanager
def _evaluated(network: nn.Module) -> Iterator[None]:
    network.eval()
    yield
    network.train()


if __name__ == "__main__":
    main()
