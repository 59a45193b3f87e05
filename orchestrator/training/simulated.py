"""A training that trains nothing and imports no torch, for measuring the engine itself.

`ORCH_TRAINING=orch.training.simulated:open_training orch sweep …` uses it. Its results are made up: use a new store.
"""

import time
from typing import Any

from orch.sweeps.result import CurvePoint, Result, StopReason
from orch.sweeps.trial import Trial


class Simulated:
    """A training that ends after one step, with accuracy at chance."""

    def __init__(self, trials: list[Trial]):
        self.trials = trials
        self.members: list[Trial] = []
        self.results: list[Result] = []
        self.step = 0

    @property
    def finished(self) -> bool:
        return len(self.results) == len(self.trials)

    def advance(self) -> None:
        self.step = 1
        point = CurvePoint(step=1, train_loss=0.0, validation_loss=0.0, validation_accuracy=0.0, seconds=0.0)
        for trial in self.trials:
            scores = dict.fromkeys(trial.tested_lengths, 0.0)
            self.results.append(
                Result(
                    trial=trial,
                    stop_reason=StopReason.BUDGET,
                    steps=1,
                    seconds=0.0,
                    curve=(point,),
                    test_accuracy=scores,
                    majority=scores,
                    parameters={},
                )
            )


class Slow(Simulated):
    """A simulated training that takes seconds, so that its worker can be ended meanwhile."""

    def advance(self) -> None:
        if self.step < 4:
            time.sleep(1)
            self.step += 1
        else:
            super().advance()


def open_training(trials: list[Trial], snapshots: list[Any], device: str) -> Simulated:
    return Simulated(trials)


def open_slow_training(trials: list[Trial], snapshots: list[Any], device: str) -> Simulated:
    return Slow(trials)
