"""A tabulated benchmark: the accuracies of a whole grid of networks, trained once (`benchmarks/search_grid.py`)."""

import json
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from ebnet.errors import ConfigError
from ebnet.models.config import NetworkConfig
from ebnet.search.candidate import Candidate
from ebnet.search.evaluate import Report
from ebnet.search.space import Space


@dataclass(frozen=True)
class Table:
    """Stands in for training, so that the search itself can be measured."""

    network: NetworkConfig
    input_size: int
    accuracies: dict[str, float]

    def __call__(self, candidate: Candidate, report: Report) -> float:
        """The accuracy of a candidate, as an `Evaluator` gives it."""
        return self.accuracies[candidate.key]

    def space(self) -> Space:
        """Exactly the networks of the table."""
        networks = [Candidate.parse(key).arch for key in self.accuracies]
        return Space(
            max_blocks=max(max(arch.blocks) for arch in networks),
            expansions=tuple(sorted({e for arch in networks for e in arch.expansion})),
            groups=tuple(sorted({g for arch in networks for g in arch.groups})),
            only=frozenset(self.accuracies),
        )


def shipped_table(name: str = "mnist5k") -> Path:
    """72 narrow networks on MNIST-5k: two epochs each, or `mnist5k-one-epoch` with another seed."""
    return Path(str(files("ebnet") / "search" / "tabulated" / f"{name}.json"))


def read_table(path: Path) -> Table:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        network = NetworkConfig.from_dict(values["network"])
        return Table(network, int(values["input_size"]), {k: float(v) for k, v in values["accuracy"].items()})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"{path} is not a table of accuracies: {error}") from error
