"""Schedules of the learning rate: a pure function of the number of the update, so that a resumed trial goes on exactly.

Update n of N, from 1, has the learning rate times min(1, n / w) in a warm-up of w updates. After it, `constant` keeps
the full rate, and `cosine` multiplies it with (1 + cos(pi (n - 1 - w) / (N - w))) / 2, which begins at 1 and is nearly
0 in the last update.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from orch.sweeps.recipe import CONSTANT, COSINE
from orch.sweeps.trial import Trial


class Schedule(NamedTuple):
    """The schedule of one trial."""

    kind: str = CONSTANT
    warmup_steps: int = 0
    steps: int = 1

    @classmethod
    def of(cls, trial: Trial) -> "Schedule":
        return cls(trial.schedule, trial.warmup_steps, trial.steps)

    @property
    def changes(self) -> bool:
        """Whether the learning rate ever differs from the full one."""
        return self.kind != CONSTANT or self.warmup_steps > 0

    def factor(self, update: int) -> float:
        """Return what update number `update`, from 1, multiplies the learning rate with.

        >>> [round(Schedule("cosine", 2, 6).factor(update), 3) for update in range(1, 7)]
        [0.5, 1.0, 1.0, 0.854, 0.5, 0.146]
        """
        if update <= self.warmup_steps:
            return update / self.warmup_steps
        if self.kind == CONSTANT:
            return 1.0
        done = (update - 1 - self.warmup_steps) / (self.steps - self.warmup_steps)
        return (1 + math.cos(math.pi * done)) / 2


class LearningRates:
    """The learning rate of every trial of a stack, at each of its updates."""

    def __init__(self, full: Sequence[float], schedules: Sequence[Schedule] = (), device: torch.device | None = None):
        """`full` are the rates without a schedule. With a `device`, `on_device` computes them there."""
        self._full, self._schedules = list(full), tuple(schedules)
        self.change = any(schedule.changes for schedule in self._schedules)
        self._full_K: Tensor | None = None
        if device is not None:
            self._full_K = torch.tensor(self._full, device=device)
            columns = [[each.warmup_steps, each.steps, each.kind == COSINE] for each in self._schedules]
            self._warmup_K, self._steps_K, self._cosine_K = torch.tensor(
                columns or [[0, 1, 0]] * len(self._full), dtype=torch.float64, device=device
            ).T

    def at(self, update: int) -> list[float]:
        """Return the rate of every trial at an update, from 1."""
        if not self.change:
            return self._full
        pairs = zip(self._full, self._schedules, strict=True)
        return [rate * schedule.factor(update) for rate, schedule in pairs]

    def on_device(self, update: Tensor) -> Tensor | None:
        """Return the same as a tensor (K), from the number of the update on the device; None without a device.

        A recorded step repeats its operations, so that nothing it reads may be counted by the host.
        """
        if self._full_K is None or not self.change:
            return self._full_K
        count, warmup_K = update.double(), self._warmup_K
        done_K = ((count - 1 - warmup_K) / (self._steps_K - warmup_K)).clamp(min=0)
        cosine_K = 1 - self._cosine_K * (1 - torch.cos(math.pi * done_K)) / 2
        grown_K = (count / warmup_K.clamp(min=1)).clamp(max=1)
        return torch.mul(self._full_K * grown_K, cosine_K).float()
