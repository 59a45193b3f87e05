"""What a driver is given to do, and whom it tells. Knows nothing of Ray."""

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from orch.running.failures import Failure
from orch.sweeps.trial import Trial


@dataclass
class Work:
    """A unit of work and what became of earlier attempts at it."""

    trials: list[Trial]
    history: list[Failure] = field(default_factory=list)
    attempts: dict[str, str] = field(default_factory=dict)
    finished: set[str] = field(default_factory=set)
    step: int = 0
    heard_at: float = 0.0

    @property
    def label(self) -> str:
        return self.trials[0].label

    @property
    def open_trials(self) -> list[Trial]:
        return [trial for trial in self.trials if trial.id not in self.finished]

    def part(self, most: int) -> tuple["Work", "Work | None"]:
        """The first few of its open trials, and the rest if there is one; each has the same past."""
        trials = self.open_trials
        rest = Work(trials[most:], list(self.history)) if len(trials) > most else None
        return Work(trials[:most], list(self.history)), rest

    def apart(self) -> list["Work"]:
        """Each open trial by itself, with a fresh start: what went wrong with the pack may be another's doing."""
        return [Work([trial]) for trial in self.open_trials]


class Turn(enum.Enum):
    NOW = "now"
    APART = "apart"
    """Somebody else has some of it: ask for each trial by itself."""
    LATER = "later"
    NEVER = "never"
    """Somebody else has finished it."""


class Listener(Protocol):
    """Told what happens, in the driver's process. Must not raise: Tune would end the whole sweep."""

    def started(self, work: Work) -> None: ...

    def finished(self, work: Work, summary: dict[str, Any]) -> None: ...

    def failed(self, work: Work, failure: Failure, again: bool) -> None: ...

    def tick(self, running: Sequence[Work], num_waiting: int) -> None: ...

    def turn(self, work: Work) -> Turn:
        """Whether this driver should take it now."""
        ...

    def should_stop(self) -> bool: ...
