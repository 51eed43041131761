"""The search for networks: the paper's staged procedure, within budgets, shared by many workers.

from ebnet.search import Worker, new_settings, open_study, population

`docs/search.md` tells how it works; `ebnet search` is its command line.
"""

from typing import TYPE_CHECKING

from ebnet.lazy import on_first_use

if TYPE_CHECKING:
    from ebnet.search.begin import begin_study as begin_study
    from ebnet.search.begin import new_settings as new_settings
    from ebnet.search.budget import Budget as Budget
    from ebnet.search.candidate import Candidate as Candidate
    from ebnet.search.directory import open_study as open_study
    from ebnet.search.population import population as population
    from ebnet.search.space import Space as Space
    from ebnet.search.worker import Worker as Worker

__all__, __getattr__ = on_first_use(
    __name__,
    {
        "ebnet.search.budget": ("Budget",),
        "ebnet.search.candidate": ("Candidate",),
        "ebnet.search.space": ("Space",),
        "ebnet.search.worker": ("Worker",),
        "ebnet.search.begin": ("begin_study", "new_settings"),
        "ebnet.search.directory": ("open_study",),
        "ebnet.search.population": ("population",),
    },
)
