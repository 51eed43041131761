"""How fast pictures come without any training: the ceiling that a training run must stay below."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from ebnet.data.loader import Loader


@dataclass(frozen=True)
class Throughput:
    """What was measured."""

    pictures: int
    seconds: float

    @property
    def images_per_second(self) -> float:
        return self.pictures / self.seconds

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "images_per_second": self.images_per_second}


def measure(loader: Loader, seconds: float, clock: Callable[[], float] = time.perf_counter) -> Throughput:
    """Iterate epochs for `seconds`, the first batch (which starts workers and fills caches) not counted."""
    epoch, pictures = 0, 0
    batches = loader.epoch(epoch)
    next(batches)
    start = clock()
    while clock() - start < seconds:
        for _, labels in batches:
            pictures += len(labels)
            if clock() - start >= seconds:
                break
        else:
            epoch += 1
            batches = loader.epoch(epoch)
    return Throughput(pictures, clock() - start)
