"""The time and memory of a trial of a user's own model, measured in a process of its own before a run. No torch."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from orch.sweeps.trial import Trial

NUM_PACKED = 4
"""Trials in the pack that is tried."""


@dataclass(frozen=True, slots=True)
class Probed:
    """Seconds and bytes that were measured on one CPU core, and whether trials can share one program."""

    step_seconds: float
    validation_seconds: float
    tests_seconds: float
    """All tests at the end of a trial."""
    memory: float | None = None
    """Bytes that one trial took in training; None where the system does not tell."""
    stacks: bool | None = None
    """Whether trials of the model share one program; None for a network that is not a wrapped module."""
    reason: str = ""
    """Why they do not."""
    pack_seconds: float | None = None
    """A step of a pack of `NUM_PACKED` trials; None if it was not tried."""

    def seconds(self, trial: Trial) -> float:
        """Return the seconds of a trial that uses its whole budget."""
        validations = math.ceil(trial.steps / trial.eval_every)
        return trial.steps * self.step_seconds + validations * self.validation_seconds + self.tests_seconds

    def speedup(self, size: int) -> float:
        """Return the training steps per second of all trials in a pack of `size`, relative to one trial alone."""
        if not self.stacks or self.pack_seconds is None:
            return 1.0
        per_trial = max(0.0, self.pack_seconds - self.step_seconds) / (NUM_PACKED - 1)
        return size * self.step_seconds / (self.step_seconds + (size - 1) * per_trial)


Probe = Callable[[Sequence[Trial]], Mapping[Trial, Probed]]
"""Tries those of the trials that a user's own code is part of, and returns what each took; it raises what is wrong."""
