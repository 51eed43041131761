"""What was decided in a study, in order: its settings, the candidates of each sweep, extensions.

Any worker may decide what comes next, several may do so at once, and any may die while at it. So decisions are appended
as records of a second Optuna study, whose numbering is a total order that the database keeps; where two workers wrote
the same decision the first record holds.
"""

from dataclasses import dataclass
from typing import Any

import optuna
from optuna.storages import RDBStorage
from optuna.trial import TrialState, create_trial

from ebnet.errors import StudyError
from ebnet.search.budget import Budget, Budgets
from ebnet.search.directions import Sweep
from ebnet.search.settings import Settings

FORMAT = 1


@dataclass(frozen=True)
class Decisions:
    """The ledger as read.

    Attributes:
        rounds: the budgets of every round, extensions included.
        sweeps: the sweeps decided so far.
        latencies: measured milliseconds by key.
    """

    settings: Settings
    rounds: tuple[Budgets, ...]
    sweeps: tuple[Sweep, ...]
    latencies: dict[str, float]

    @property
    def budgets(self) -> Budgets:
        """The budgets that hold now."""
        return self.rounds[-1]


class Ledger:
    """The records of one study."""

    def __init__(self, storage: RDBStorage, name: str) -> None:
        self._storage, self._name = storage, f"{name}/ledger"

    def create(self, settings: Settings) -> None:
        """Begin, or find that the same study has begun already."""
        study = optuna.create_study(storage=self._storage, study_name=self._name, load_if_exists=True)
        if not study.get_trials(deepcopy=False):
            self._append({"record": "settings", "format": FORMAT, "settings": settings.to_dict()})

    def sweep(self, number: int, sweep: Sweep, latencies: dict[str, float]) -> None:
        """Decide on a sweep, unless someone else already has."""
        self._append({"record": "phase", "number": number, "phase": sweep.to_dict(), "latencies": latencies})

    def extension(self, budgets: Budgets, rounds: int) -> None:
        values = [{"cost": budget.cost, "limit": budget.limit} for budget in budgets]
        self._append({"record": "extension", "budgets": values, "rounds": rounds})

    def read(self) -> Decisions:
        records = self._records()
        if not records or records[0].get("record") != "settings":
            raise StudyError(f"{self._name} has no settings; begin the study anew under another name")
        if records[0]["format"] != FORMAT:
            raise StudyError(f"{self._name} was written by another version (format {records[0]['format']})")
        settings = Settings.from_dict(records[0]["settings"])
        rounds: list[Budgets] = [settings.budgets] * settings.rounds
        sweeps: list[Sweep] = []
        latencies: dict[str, float] = {}
        for record in records[1:]:
            if record["record"] == "extension":
                rounds += [tuple(Budget(**values) for values in record["budgets"])] * record["rounds"]
            elif record["record"] == "phase" and record["number"] == len(sweeps):
                sweeps.append(Sweep.from_dict(record["phase"]))
                latencies = record["latencies"] | latencies
        return Decisions(settings, tuple(rounds), tuple(sweeps), latencies)

    def _records(self) -> list[dict[str, Any]]:
        try:
            study = optuna.load_study(storage=self._storage, study_name=self._name)
        except KeyError as error:
            raise StudyError(f"the storage has no study {self._name.removesuffix('/ledger')!r}") from error
        trials = sorted(study.get_trials(deepcopy=False), key=lambda trial: trial.number)
        return [trial.user_attrs["ledger"] for trial in trials]

    def _append(self, record: dict[str, Any]) -> None:
        study = optuna.load_study(storage=self._storage, study_name=self._name)
        study.add_trial(create_trial(state=TrialState.COMPLETE, value=0.0, user_attrs={"ledger": record}))
