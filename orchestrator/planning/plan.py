"""The plan of sweeps: every trial once, which are done, which are left, and about how long those take.

No torch and no Ray. A store is read where there is one; nothing is written.
"""

import enum
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from orch.core.records import RatesRecord
from orch.planning.doctor_times import DoctorTimes
from orch.planning.estimate import MEASURED_COLUMNS, Basis, Estimator, cost_columns
from orch.planning.probed import Probe, Probed
from orch.store.failed_trials import failed_trials
from orch.sweeps import selection
from orch.sweeps.catalogue import BUILT_IN, Catalogue, resolve
from orch.sweeps.expansion import expand
from orch.sweeps.registry import ALL
from orch.sweeps.scales import find_scale
from orch.sweeps.selection import Results
from orch.sweeps.trial import Trial
from orch.sweeps.where import Known, parse_where

if TYPE_CHECKING:
    from pyarrow import Table

    from orch.store import Store

LEAST_SECONDS = 0.001
"""Seconds that a trial counts with at the least where something is divided by its time."""


class TrialState(enum.StrEnum):
    DONE = "done"
    FAILED = "failed"
    """The last attempt failed; the trial is tried again."""
    TO_DO = "to do"
    WAITING = "waiting"
    """Its learning rate depends on trials that are not finished."""


@dataclass(frozen=True, slots=True)
class PlannedTrial:
    id: str
    trial: Trial
    sweeps: tuple[str, ...]
    """The sweeps of the plan that ask for it."""
    others: tuple[str, ...]
    """Further sweeps of the paper that ask for it at the same scale."""
    state: TrialState
    seconds: float
    """Estimated time on one device, alone or as its share of a pack; 0 for a finished trial."""
    basis: Basis
    probed: Probed | None = None
    """What a trial of its model took when it was tried; None for a built-in model."""
    doctor_times: DoctorTimes | None = None
    """The times that `orch doctor` measured of its model on the device; None if there are none."""
    pack: int = 1
    """Number of trials in its pack."""
    alone: float | None = None
    """Estimated time alone, if `seconds` is a share of a pack."""

    @property
    def shared(self) -> bool:
        return len(self.sweeps) + len(self.others) > 1

    @property
    def left(self) -> bool:
        """True if a run would train it now."""
        return self.state in (TrialState.TO_DO, TrialState.FAILED)


@dataclass(frozen=True, slots=True)
class Plan:
    sweeps: tuple[str, ...]
    scale: str
    trials: list[PlannedTrial]
    waiting: Counter[str]
    """The number of waiting trials for each reason to wait."""
    device: str
    """The kind of device that the estimates are for."""
    left_out: list[str] = field(default_factory=list)
    """Sentences about what the scale leaves out of these sweeps."""
    estimator: Estimator = field(default_factory=Estimator, repr=False, compare=False)

    @property
    def num_packs(self) -> int:
        """Number of packs in which the trials that are left train."""
        return round(sum(1 / planned.pack for planned in self.trials if planned.left))

    def in_packs(self, packs: Iterable[Sequence[Trial]]) -> "Plan":
        """Return this plan with every trial's seconds as its share of its pack."""
        return replace(self, trials=shared_out(self.trials, packs, self.estimator.estimate))

    @property
    def num_waiting(self) -> int:
        return self.waiting.total()

    @property
    def num_saved(self) -> int:
        """The number of trials saved because sweeps share them."""
        return sum(len(planned.sweeps) - 1 for planned in self.trials)

    @property
    def hours(self) -> float:
        """Device-hours of the trials that are left."""
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
    names: Iterable[str],
    scale: str,
    where: Iterable[str],
    store: "Store | None",
    device: str | None = None,
    catalogue: Catalogue = BUILT_IN,
    probe: Probe | None = None,
) -> Plan:
    """Plan these sweeps of a catalogue (`all` for all) at a scale, narrowed by conditions, against what a store has.

    Estimates are for `device`, by default the one on which the store's trials spent most of their time. `probe` tries
    the models and tasks of a user's own code among the trials that are left; without it, nothing of them is run.
    """
    size = find_scale(scale)
    planned_sweeps, matches = resolve(names, catalogue), parse_where(where, Known.of(catalogue)).matches
    columns = [*selection.COLUMNS, *MEASURED_COLUMNS, *cost_columns(catalogue)]
    trials = _read(store.with_settings_of(catalogue), "trials", columns) if store is not None else None
    done = set() if trials is None else set(trials["trial_id"].to_pylist())
    failed = set() if store is None else failed_trials(store, done)
    rates = store.list_json("rates", RatesRecord).values() if store is not None else ()
    estimator = Estimator(trials, device, rates, catalogue)
    # Every sweep of the paper is expanded, to know which trials serve others as well. Some run under no protocol.
    results = Results.none() if trials is None else Results.of_table(trials)
    others = [] if size.protocol is not None else resolve([ALL], catalogue)
    every_sweep = dict.fromkeys([*planned_sweeps, *others])
    expansion = expand(every_sweep, size, results, catalogue)

    def planned(trial_id: str, trial: Trial, sweeps: list[str], state: TrialState) -> PlannedTrial:
        inside = tuple(name for name in sweeps if name in planned_sweeps)
        others = tuple(name for name in sweeps if name not in planned_sweeps)
        estimate = (0.0, Basis.MEASURED) if state is TrialState.DONE else estimator.estimate(trial)
        evidence = estimator.probed(trial), estimator.doctor_times(trial)
        return PlannedTrial(trial_id, trial, inside, others, state, *estimate, *evidence)

    wanted = [each for each in expansion.trials.values() if each.sweeps[0] in planned_sweeps and matches(each.trial)]
    if probe is not None:
        estimator.learn(probe([each.trial for each in wanted if each.id not in done]))
    found = []
    for each in wanted:
        state = TrialState.DONE if each.id in done else TrialState.FAILED if each.id in failed else TrialState.TO_DO
        found.append(planned(each.id, each.trial, each.sweeps, state))
    waiting: Counter[str] = Counter()
    for each_waiting, sweeps in expansion.waiting.items():
        trial = each_waiting.trial
        if sweeps[0] in planned_sweeps and (trial is None or matches(trial)):
            waiting[each_waiting.reason] += 1
            if trial is not None:
                found.append(planned("", trial, sweeps, TrialState.WAITING))
    cells = [cell for name, cell in expansion.cells if name in planned_sweeps and cell.trials]
    left_out = size.left_out((cell.example.model.name, cell.left_out) for cell in cells if matches(cell.example))
    return Plan(tuple(planned_sweeps), scale, found, waiting, estimator.device, left_out, estimator)


Estimate = Callable[[Trial, int], tuple[float, Basis]]
"""Returns the seconds of a trial in a pack of a size, and what they rest on: see `Estimator.estimate`."""


def wall_seconds(planned: Iterable[PlannedTrial], slots: int) -> float:
    """Estimate the time from the first to the last result, given the number of trials or packs that train at a time.

    Packs are split near the end of a run, so that only a trial is too long to be shared by workers.
    """
    left = [each for each in planned if each.seconds]
    longest = max((each.seconds if each.alone is None else each.alone for each in left), default=0.0)
    return max(sum(each.seconds for each in left) / slots, longest)


def shared_out(
    planned: Iterable[PlannedTrial], packs: Iterable[Sequence[Trial]], estimate: Estimate
) -> list[PlannedTrial]:
    """Return the planned trials with their share of the seconds of their packs. Those in none of them are alone."""
    shares: dict[Trial, tuple[int, float, Basis]] = {}
    for pack in packs:
        # The others are padded to the longest sequences of the pack.
        kinds = dict.fromkeys(trial.stackable() for trial in pack)
        slowest = max(kinds, key=lambda kind: estimate(kind, 1)[0])
        shares |= dict.fromkeys(pack, (len(pack), *estimate(slowest, len(pack))))

    def share(each: PlannedTrial) -> PlannedTrial:
        if each.trial not in shares or each.state is TrialState.DONE:
            return each
        size, seconds, basis = shares[each.trial]
        return replace(each, seconds=seconds, basis=basis, pack=size, alone=estimate(each.trial, 1)[0])

    return [share(each) for each in planned]


def _read(store: "Store", table: str, columns: Sequence[str]) -> "Table | None":
    return store.read(table, columns=list(dict.fromkeys(columns))) if store.exists() else None
