"""Units of work, each a pack of trials for one worker, as the driver keeps track of them. Imports no Ray."""

import enum
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from orch.planning.plan import PlannedTrial
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
        """Do what is due from time to time, such as showing the progress. It is called several times a second."""
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
