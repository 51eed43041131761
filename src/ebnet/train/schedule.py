"""The learning rate of each step: linear warm-up (Goyal et al. 2017), then milestones or a cosine."""

import math
from bisect import bisect_right
from dataclasses import dataclass

from ebnet.recipe.settings import Schedule


@dataclass(frozen=True)
class LearningRate:
    """A function of the step alone, so that a resumed run needs no scheduler state.

    Over the warm-up the rate rises linearly to `base`, which its last step reaches. At and after an epoch in
    `milestones` (counted from 0, fractions allowed) the rate is multiplied by `decay`, once for each. With `cosine` it
    falls from the end of the warm-up to 0 at the end of that epoch, along half a cosine (Loshchilov and Hutter 2017).
    """

    base: float
    steps_per_epoch: int
    warmup_epochs: float = 0.0
    milestones: tuple[float, ...] = ()
    decay: float = 0.1
    cosine: float | None = None

    def __call__(self, step: int) -> float:
        warmup = self.warmup_epochs * self.steps_per_epoch
        rise = min(1.0, (step + 1) / warmup) if warmup else 1.0
        if self.cosine is not None:
            done = max(0.0, step - warmup) / max(1.0, self.cosine * self.steps_per_epoch - warmup)
            return self.base * rise * (1 + math.cos(math.pi * min(1.0, done))) / 2
        return self.base * rise * self.decay ** bisect_right(self.milestones, step / self.steps_per_epoch)

    @classmethod
    def of(cls, settings: Schedule, steps_per_epoch: int) -> "LearningRate":
        """Of a stage of a recipe."""
        cosine = settings.decay == "cosine"
        return cls(
            settings.learning_rate,
            steps_per_epoch,
            settings.warmup_epochs,
            settings.milestones,
            1.0 if settings.decay == "cosine" else settings.decay,
            settings.epochs if cosine else None,
        )
