"""One training step, from pictures to new weights."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from ebnet.data import Normalise
from ebnet.errors import NonFiniteError
from ebnet.models.network import ExpertBinaryNetwork
from ebnet.nn.ede import error_decays
from ebnet.recipe.phases import number
from ebnet.recipe.settings import Recipe, Schedule
from ebnet.train import bagging, bop
from ebnet.train.adam import Adam
from ebnet.train.distributed import is_distributed, sync_batch_norm
from ebnet.train.losses import attention_transfer, logit_distillation, mixed_opinions, soft_cross_entropy
from ebnet.train.mixup import mix, mixup_weight
from ebnet.train.phases import Phase
from ebnet.train.routing import RoutingPolicy
from ebnet.train.schedule import LearningRate


class Trainer:
    """The network of one phase with its optimizer, learning rate and teacher."""

    def __init__(
        self,
        network: ExpertBinaryNetwork,
        teacher: ExpertBinaryNetwork | None,
        phase: Phase,
        recipe: Recipe,
        steps_per_epoch: int,
        normalise: Normalise,
        device: torch.device,
    ) -> None:
        self.recipe, self.phase, self.device, self.normalise = recipe, phase, device, normalise
        self.settings: Schedule = recipe.settings(phase.name)
        self.network = self._placed(network).train()
        self.teacher = None if teacher is None else self._placed(teacher).eval().requires_grad_(False)
        self.model = self._wrapped(self.network)
        self.steps = self.settings.epochs * steps_per_epoch
        self.decays = error_decays(self.network)
        self.routing = RoutingPolicy(network, recipe.routing, self.steps)
        groups = self.routing.named_groups()
        self.names = [name for _, group in groups for name in group]
        self.factors = [factor for factor, _ in groups]
        """Of each group of parameters, on the learning rate."""
        self.optimizer = Adam(
            [{"params": list(group.values())} for _, group in groups],
            self.settings.learning_rate,
            self.settings.weight_decay,
            self.routing.experts(),
        )
        self.rate = LearningRate.of(self.settings, steps_per_epoch)
        bop_learns = recipe.optimizer == "bop" and phase.precision.binary_weights
        self.flipped = [layer.weight for layer in self.network.binary_layers().values()] if bop_learns else []
        """The weights that have no latent ones behind them."""
        bop.begin(self.flipped)

    def step(
        self, images: Tensor, labels: Tensor, step: int, opinions: Tensor | None = None, indices: Tensor | None = None
    ) -> dict[str, float]:
        """Learn from one batch (this process's part of it); returns the terms of the loss and their sum.

        Args:
            opinions: the logits of a teacher from outside for these images.
            indices: which images of the data set they are, for an ensemble's bags; without, every member sees all.
        """
        for group, factor in zip(self.optimizer.param_groups, self.factors, strict=True):
            group["lr"] = self.rate(step) * factor
        self.optimizer.zero_grad()
        for estimator in self.decays:
            estimator.progress = step / self.steps
        mixing = mixup_weight(self.settings.mixup, self.recipe.seed, number(self.phase.name), step)
        totals: dict[str, float] = {}
        for pictures, classes, said, which, synced in self._parts(images, labels, opinions, indices):
            with synced, self._autocast():
                terms = self._loss(pictures, classes, said, self._bags(len(pictures), which), mixing)
                (terms["loss"] / self.recipe.compute.accumulation).backward()
            for name, term in terms.items():
                totals[name] = totals.get(name, 0.0) + term.item() / self.recipe.compute.accumulation
        if not all(map(_finite, totals.values())):
            raise NonFiniteError(self._not_finite(totals, step))
        self.optimizer.coupling = self.routing.coupling(step)
        bop.flip(self.optimizer, self.flipped, self.rate(step) / self.settings.learning_rate)
        self.optimizer.step()
        return totals

    def _bags(self, count: int, indices: Tensor | None) -> list[Tensor] | None:
        members = self.network.config.members
        if members == 1:
            return None
        if indices is None:
            return [torch.arange(count, device=self.device)] * members
        return [bag.to(self.device) for bag in bagging.bags(self.recipe.seed, members, indices.numpy())]

    def _loss(
        self, images: Tensor, labels: Tensor, opinions: Tensor | None, bags: list[Tensor] | None, mixing: float
    ) -> dict[str, Tensor]:
        network, distillation = self.network.config, self.recipe.distillation
        channels_last = self.recipe.compute.channels_last
        pixels = self.normalise.tensor(images.to(self.device), channels_last)
        pixels, targets = mix(pixels, labels.to(self.device), network.num_classes, mixing)
        rows = None if bags is None else torch.cat(bags)
        targets = _taken(targets, rows)
        if self.teacher is None and opinions is None:
            label_loss = soft_cross_entropy(_forward(self.model, pixels, None, bags)[0], targets)
            return {"loss": label_loss, "labels": label_loss.detach()}
        place = distillation.attention_after if distillation.attention_weight and self.teacher else None
        logits, features = _forward(self.model, pixels, place, bags)
        with torch.no_grad():
            theirs, their_features = _forward(self.teacher, pixels, place) if self.teacher else (None, [])
        if opinions is not None:
            theirs = mixed_opinions(opinions.to(self.device).float(), mixing)
        terms = {"labels": soft_cross_entropy(logits, targets)}
        loss = terms["labels"]
        if distillation.logits_weight:
            assert theirs is not None
            terms["logits"] = logit_distillation(logits, _taken(theirs, rows), distillation.temperature)
            loss = loss + distillation.logits_weight * terms["logits"]
        if place:
            terms["attention"] = attention_transfer(features, [_taken(maps, rows) for maps in their_features])
            loss = loss + distillation.attention_weight * terms["attention"]
        return {"loss": loss} | {name: term.detach() for name, term in terms.items()}

    def _parts(
        self, images: Tensor, labels: Tensor, opinions: Tensor | None, indices: Tensor | None
    ) -> Iterator[tuple[Tensor, Tensor, Tensor | None, Tensor | None, AbstractContextManager[None]]]:
        """The accumulated parts of a batch; processes exchange gradients only after the last."""
        count = self.recipe.compute.accumulation
        said, which = (some.chunk(count) if some is not None else [None] * count for some in (opinions, indices))
        for part, rows in enumerate(zip(images.chunk(count), labels.chunk(count), said, which, strict=True)):
            waits = isinstance(self.model, DistributedDataParallel) and part < count - 1
            yield *rows, self.model.no_sync() if waits else nullcontext()  # type: ignore[operator]

    def _placed(self, network: ExpertBinaryNetwork) -> ExpertBinaryNetwork:
        network = network.to(self.device)
        if self.recipe.compute.channels_last:
            network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return network

    def _wrapped(self, network: ExpertBinaryNetwork) -> nn.Module:
        model: nn.Module = network
        if is_distributed():
            if self.recipe.compute.sync_batch_norm:
                sync_batch_norm(network)
            model = DistributedDataParallel(network, device_ids=[self.device] if self.device.type == "cuda" else None)
        return torch.compile(model, dynamic=False) if self.recipe.compute.compile else model  # type: ignore[return-value]

    def _autocast(self) -> AbstractContextManager[None]:
        usable = self.recipe.compute.mixed_precision and self.device.type == "cuda" and torch.cuda.is_bf16_supported()
        return torch.autocast("cuda", torch.bfloat16) if usable else nullcontext()

    def _not_finite(self, totals: dict[str, float], step: int) -> str:
        terms = ", ".join(f"{name} = {value:g}" for name, value in totals.items())
        return (
            f"the loss is no longer a number in step {step} of {self.phase.name} ({terms}) at a learning rate of "
            f"{self.rate(step):g}. The weights of this step were not used and the checkpoint before it is untouched: "
            f"lower stage.{self.phase.name}.learning_rate or lengthen its warmup_epochs, in a new run"
        )


def _forward(
    model: nn.Module, pixels: Tensor, place: str | None, bags: list[Tensor] | None = None
) -> tuple[Tensor, list[Tensor]]:
    seen = {} if bags is None else {"bags": bags}
    if place is None:
        return model(pixels, **seen), []
    logits, features = model(pixels, features=place, **seen)
    return logits, features


def _taken(values: Tensor, rows: Tensor | None) -> Tensor:
    return values if rows is None else values[rows]


def _finite(value: float) -> bool:
    return abs(value) < float("inf")
