"""What runs in one process, and in which order the processes take it up (`pytest -n 2 --dist loadfile`).

Tests of one file stay together, because its fixtures are made once. The commands of the documents are one file and most
of the work: there the group is the document, whose commands build on each other. The longest groups come first, since
a long one at the end would leave the other process idle.
"""

import re

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from tests.docs.table import SHARE_A_PLACE

LONGEST_FIRST = (
    "docs/engine-measured.md",
    "docs/engine.md",
    "tests/runtime/test_core_alone.py",
    "tests/native/test_sanitizers.py",
    "README.md",
    "tests/train/test_restart.py",
    "tests/reproduce/test_reproduce.py",
    "tests/benchmarks/test_peers.py",
    "docs/results.md",
    "docs/c-api.md",
    "tests/search/test_many_workers.py",
    "tests/native/test_bconv.py",
)


def group_of(nodeid: str) -> str:
    """The document of a command, the file of any other test."""
    command = re.search(r"::test_runs\[(\S+\.md): ", nodeid)
    return SHARE_A_PLACE.get(command[1], command[1]) if command else nodeid.split("::", maxsplit=1)[0]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    rank = {name: number for number, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: rank.get(group_of(item.nodeid), len(rank)))


class ByGroup(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """Groups in the order of the collection."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByGroup | None:
    if config.getvalue("dist") != "loadfile":
        return None
    config.option.loadscopereorder = False
    return ByGroup(config, log)
