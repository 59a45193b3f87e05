"""What sweeps come to: every trial once, what is done and what is left, and about how long that takes.

No torch and no Ray. A store is read where there is one; nothing is written.
"""

import enum
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orch.core.errors import UnknownName
from orch.planning.estimate import MEASURED_COLUMNS, Basis, Estimator, kind_columns
from orch.store.failed_trials import failed_trials
from orch.sweeps import selection
from orch.sweeps.registry import ALL, expand, resolve
from orch.sweeps.scales import SCALES
from orch.sweeps.selection import Results
from orch.sweeps.trial import Trial
from orch.sweeps.where import parse_where

if TYPE_CHECKING:
    from pyarrow import Table

    from orch.store import Store


class TrialState(enum.StrEnum):
    DONE = "done"
    FAILED = "failed"
    """The last attempt at it went wrong; it is tried again."""
    TO_DO = "to do"
    WAITING = "waiting"
    """Its learning rate comes from results that are not there yet."""


@dataclass(frozen=True, slots=True)
class PlannedTrial:
    id: str
    trial: Trial
    sweeps: tuple[str, ...]
    """Those of the plan that want it."""
    others: tuple[str, ...]
    """Further sweeps of the paper's that want it at the same scale."""
    state: TrialState
    seconds: float
    """How long it should take on one device, alone or as its share of a pack; nothing for what is done."""
    basis: Basis

    @property
    def shared(self) -> bool:
        return len(self.sweeps) + len(self.others) > 1

    @property
    def left(self) -> bool:
        """Whether it would be run now."""
        return self.state in (TrialState.TO_DO, TrialState.FAILED)


@dataclass(frozen=True, slots=True)
class Plan:
    sweeps: tuple[str, ...]
    scale: str
    trials: list[PlannedTrial]
    waiting: Counter[str]
    """How many trials wait, by what they wait for."""
    device: str
    """The kind of device that the estimates are for."""

    @property
    def num_waiting(self) -> int:
        return self.waiting.total()

    @property
    def num_saved(self) -> int:
        """How many more trials there would be if the sweeps did not share them."""
        return sum(len(planned.sweeps) - 1 for planned in self.trials)

    @property
    def hours(self) -> float:
        """Device-hours for what is left."""
        return sum(self.hours_by_basis.values())

    @property
    def hours_by_basis(self) -> dict[Basis, float]:
        seconds = dict.fromkeys(Basis, 0.0)
        for planned in self.trials:
            if planned.left:
                seconds[planned.basis] += planned.seconds
        return {basis: total / 3600 for basis, total in seconds.items()}

    @property
    def counts(self) -> dict[str, Any]:
        return _count(self.trials)

    def by_model_and_task(self) -> list[dict[str, Any]]:
        groups: dict[tuple[str, str], list[PlannedTrial]] = defaultdict(list)
        for planned in self.trials:
            groups[planned.trial.model.name, planned.trial.task.name].append(planned)
        return [{"model": model, "task": task} | _count(group) for (model, task), group in sorted(groups.items())]


def _count(trials: Sequence[PlannedTrial]) -> dict[str, Any]:
    states = Counter(planned.state for planned in trials)
    return {
        "trials": len(trials),
        "shared": sum(planned.shared for planned in trials),
        **{state.replace(" ", "_"): states[state] for state in TrialState},
        "hours": sum(planned.seconds for planned in trials if planned.left) / 3600,
    }


def make_plan(
    names: Iterable[str], scale: str, where: Iterable[str], store: "Store | None", device: str | None = None
) -> Plan:
    """These sweeps (`all` for all) at a scale, narrowed by conditions, against what a store has.

    `device` is the one to estimate for; else the store tells.
    """
    if scale not in SCALES:
        raise UnknownName("scale", scale, SCALES)
    asked, matches = resolve(names), parse_where(where).matches
    columns = [*selection.COLUMNS, *MEASURED_COLUMNS, *kind_columns()]
    trials = _read(store, "trials", columns) if store is not None else None
    done = set() if trials is None else set(trials["trial_id"].to_pylist())
    failed = set() if store is None else failed_trials(store, done)
    estimator = Estimator(trials, device, tried=store.list_json("rates").values() if store is not None else ())
    # Every sweep of the paper's is expanded, to know which trials serve others as well.
    results = Results.none() if trials is None else Results.of_table(trials)
    expansion = expand([*asked, *(name for name in resolve([ALL]) if name not in asked)], SCALES[scale], results)

    def planned(trial_id: str, trial: Trial, wanted_by: list[str], state: TrialState) -> PlannedTrial:
        sweeps = tuple(name for name in wanted_by if name in asked)
        others = tuple(name for name in wanted_by if name not in asked)
        estimate = (0.0, Basis.MEASURED) if state is TrialState.DONE else estimator.estimate(trial)
        return PlannedTrial(trial_id, trial, sweeps, others, state, *estimate)

    found = []
    for each in expansion.wanted.values():
        if each.sweeps[0] in asked and matches(each.trial):
            state = TrialState.DONE if each.id in done else TrialState.FAILED if each.id in failed else TrialState.TO_DO
            found.append(planned(each.id, each.trial, each.sweeps, state))
    waiting: Counter[str] = Counter()
    for held, wanted_by in expansion.held.items():
        if wanted_by[0] in asked and (held.trial is None or matches(held.trial)):
            waiting[held.reason] += 1
            if held.trial is not None:
                found.append(planned("", held.trial, wanted_by, TrialState.WAITING))
    return Plan(tuple(asked), scale, found, waiting, estimator.device)


def _read(store: "Store", table: str, columns: Sequence[str]) -> "Table | None":
    return store.read(table, columns=list(dict.fromkeys(columns))) if store.exists() else None
