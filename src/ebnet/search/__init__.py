"""The search for networks: the paper's staged procedure, within budgets, shared by many workers.

from ebnet.search import Worker, new_settings, open_study, population

`docs/search.md` tells how it works; `ebnet search` is its command line.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ebnet.search.begin import begin_study as begin_study
    from ebnet.search.begin import new_settings as new_settings
    from ebnet.search.budget import Budget as Budget
    from ebnet.search.candidate import Candidate as Candidate
    from ebnet.search.directory import open_study as open_study
    from ebnet.search.population import population as population
    from ebnet.search.space import Space as Space
    from ebnet.search.worker import Worker as Worker

_HOME = {
    "Budget": "budget",
    "Candidate": "candidate",
    "Space": "space",
    "Worker": "worker",
    "begin_study": "begin",
    "new_settings": "begin",
    "open_study": "directory",
    "population": "population",
}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    """The public names, each imported on first use."""
    if name in _HOME:
        return getattr(import_module(f"ebnet.search.{_HOME[name]}"), name)
    raise AttributeError(f"module 'ebnet.search' has no attribute {name!r}")
