"""Units of work, each a pack of trials for one worker, as the driver keeps track of them. Imports no Ray."""

import enum
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from orch.planning.across_cells import group_trials
from orch.planning.plan import LEAST_SECONDS, Plan, PlannedTrial, TrialState
from orch.running.failures import Failure
from orch.running.quarantine import Place
from orch.running.running_trial import RunningTrial
from orch.sweeps.trial import Trial


@dataclass
class Unit:
    """A pack of trials, with the failures of earlier attempts at it."""

    trials: list[Trial]
    failures: list[Failure] = field(default_factory=list)
    """The failures of earlier attempts, oldest first."""
    attempts: dict[str, str] = field(default_factory=dict)
    """The id of the current attempt at each trial."""
    finished: set[str] = field(default_factory=set)
    """Ids of its trials that have a result."""
    step: int = 0
    running: list[RunningTrial] = field(default_factory=list)
    """How far its trials in training were at the last report."""
    last_report_at: float = 0.0
    place: Place | None = None
    """Where the current attempt runs, as far as it is known."""

    @property
    def label(self) -> str:
        return self.trials[0].label

    @property
    def open_trials(self) -> list[Trial]:
        """The trials that have no result yet."""
        return [trial for trial in self.trials if trial.id not in self.finished]

    @property
    def open_ids(self) -> list[str]:
        return [trial.id for trial in self.open_trials]

    def split(self, size: int) -> tuple["Unit", "Unit | None"]:
        """Return a unit of the first `size` open trials, and one of the rest if there is a rest.

        Both keep the failures of this one.
        """
        trials = self.open_trials
        rest = Unit(trials[size:], list(self.failures)) if len(trials) > size else None
        return Unit(trials[:size], list(self.failures)), rest

    def one_by_one(self) -> list["Unit"]:
        """Return a unit for each open trial, without failures, which may have been another trial's fault."""
        return [Unit([trial]) for trial in self.open_trials]


class Turn(enum.Enum):
    """The answer to whether this driver should start a unit."""

    NOW = "now"
    ONE_BY_ONE = "one by one"
    """Another driver has some of its trials: ask again for each trial by itself."""
    LATER = "later"
    NEVER = "never"
    """Another driver has finished it."""


class Listener(Protocol):
    """Receives the events of a run, in the driver's process. It must not raise, because Tune would end the run."""

    def started(self, unit: Unit) -> None: ...

    def finished(self, unit: Unit, summary: dict[str, Any]) -> None:
        """Handle the result of one trial of a unit; `summary` has some columns of its row."""
        ...

    def failed(self, unit: Unit, failure: Failure, again: bool) -> None:
        """Handle a failed attempt; `again` says whether its open trials will be retried."""
        ...

    def changed_state(self, text: str) -> None:
        """Handle a change that user code made to the global state of its process, as a sentence."""
        ...

    def refused(self, unit: Unit) -> None:
        """Handle a unit that has not begun, because its worker is on a place in quarantine. It waits again."""
        ...

    def quarantined(self, places: Mapping[Place, str], news: str) -> None:
        """Handle a change of the places in quarantine, each with what fails there; `news` is a sentence about it."""
        ...

    def tick(self, running: Sequence[Unit], num_waiting: int) -> None:
        """Handle the passing of time. It is called several times a second."""
        ...

    def arrange(self, queue: deque[Unit]) -> None:
        """Replace the units that wait by others, if results that arrived make others more useful."""
        ...

    def turn(self, unit: Unit) -> Turn:
        """Say whether this driver should start the unit now."""
        ...

    def should_stop(self) -> bool: ...


class Decider(Protocol):
    """Says which trials are worth running, and is asked again as results arrive."""

    kind: str
    """What the trials are to settle: claims or cells."""

    def values(self, left: Collection[PlannedTrial]) -> Mapping[str, float]:
        """Return the value of each of these trials that is worth running, by id."""
        ...


def pack_by_value(
    planned: Iterable[PlannedTrial], values: Mapping[str, float], device: str, most: int | None = None
) -> list[Unit]:
    """Group the trials that have a value into units, those with the most value per second first."""

    def density(pack: list[PlannedTrial]) -> float:
        return sum(values[each.id] for each in pack) / max(_seconds(pack), LEAST_SECONDS)

    wanted = sorted((each for each in planned if each.id in values), key=lambda each: -density([each]))
    packs = group_trials(wanted, device, most)
    return [Unit([each.trial for each in pack]) for pack in sorted(packs, key=density, reverse=True)]


def make_packs(
    planned: Iterable[PlannedTrial], device: str, most: int | None = None, cheapest_first: bool = False
) -> list[Unit]:
    """Group trials into units, in the order to run them.

    The shortest trial of every model and task runs first and alone, so that a broken model or task is noticed early.
    The others are packed with trials that differ only in learning rate, seeds and task, and run longest first, so that
    no worker is left with a long pack at the end; with `cheapest_first` all units run shortest first. `most` limits the
    size of packs.
    """
    by_length = sorted(planned, key=lambda each: each.seconds, reverse=True)
    shortest = {(each.trial.model.name, each.trial.task.name): each for each in by_length}
    canary_ids = {each.id for each in shortest.values()}
    canaries = [each for each in by_length if each.id in canary_ids]
    packs = group_trials((each for each in by_length if each.id not in canary_ids), device, most)
    longest_first = [[each] for each in canaries] + sorted(packs, key=_seconds, reverse=True)
    order = sorted(longest_first, key=_seconds) if cheapest_first else longest_first
    return [Unit([each.trial for each in pack]) for pack in order]


def packed(plan: Plan, most: int | None = None) -> Plan:
    """Return the plan with each trial's seconds in the pack that it would train in; `most` limits their size.

    Trials that wait are packed among themselves.
    """
    left = [planned for planned in plan.trials if planned.left]
    waiting = [
        replace(each, id=str(place)) for place, each in enumerate(plan.trials) if each.state is TrialState.WAITING
    ]
    units = [*make_packs(left, plan.device, most), *make_packs(waiting, plan.device, most)]
    return plan.in_packs(unit.trials for unit in units)


def _seconds(pack: list[PlannedTrial]) -> float:
    return sum(each.seconds for each in pack)
