"""The learning rate of each step: linear warm-up (Goyal et al. 2017), then a factor at each milestone."""

from bisect import bisect_right
from dataclasses import dataclass


@dataclass(frozen=True)
class LearningRate:
    """A function of the step alone, so that a resumed run needs no scheduler state.

    Over the warm-up the rate rises linearly to `base`, which its last step reaches. At and after an epoch in
    `milestones` (counted from 0, fractions allowed) the rate is multiplied by `decay`, once for each.
    """

    base: float
    steps_per_epoch: int
    warmup_epochs: float = 0.0
    milestones: tuple[float, ...] = ()
    decay: float = 0.1

    def __call__(self, step: int) -> float:
        warmup = self.warmup_epochs * self.steps_per_epoch
        rise = min(1.0, (step + 1) / warmup) if warmup else 1.0
        return self.base * rise * self.decay ** bisect_right(self.milestones, step / self.steps_per_epoch)
