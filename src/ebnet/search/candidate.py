"""A candidate: a network as the search sees it, that is by its degrees of freedom."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

from ebnet.arch import Arch
from ebnet.errors import ConfigError
from ebnet.models.config import NetworkConfig


@dataclass(frozen=True, eq=False)
class Candidate:
    """Blocks, expansion and groups of every stage (`arch`), 1x1 aggregation over groups, and experts.

    Two candidates that are the same network are equal: without groups there is nothing to aggregate.

    >>> Candidate(Arch.parse("1262-2-4:8:8:16"), experts=4).key
    '1262-2-4:8:8:16 +1x1 x4'
    """

    arch: Arch
    aggregation: bool = True
    experts: int = 1

    @classmethod
    def of(cls, config: NetworkConfig) -> Self:
        if not isinstance(config.arch, Arch):
            raise ConfigError(f"{config.arch}: a search changes blocks, expansion and groups, which cells have not")
        return cls(config.arch, config.aggregation, config.experts)

    @classmethod
    def parse(cls, key: str) -> Self:
        """Read a `key`; a bare notation means aggregation and one expert."""
        notation, *flags = key.split()
        experts = [int(flag[1:]) for flag in flags if flag.startswith("x")]
        return cls(Arch.parse(notation), not flags or "+1x1" in flags, experts[0] if experts else 1)

    @cached_property
    def key(self) -> str:
        """The name under which a study keeps it; as good as the candidate itself."""
        aggregates = self.aggregation or max(self.arch.groups) == 1
        return f"{self.arch} {'+1x1' if aggregates else '-1x1'} x{self.experts}"

    def config(self, base: NetworkConfig) -> NetworkConfig:
        """The whole network: everything that is not searched comes from `base`."""
        return replace(base, arch=self.arch, aggregation=self.aggregation, experts=self.experts)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Candidate) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        return self.key
