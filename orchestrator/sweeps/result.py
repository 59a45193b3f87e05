"""The result of a trial, as training returns it, and the longest length it holds at: `horizon_90`, `horizon_99`."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from orch.sweeps.trial import Trial

HORIZONS = (90, 99)
"""Accuracies in percent whose horizon is recorded."""


class StopReason(enum.StrEnum):
    EARLY_STOP = "early_stop"
    BUDGET = "budget"
    DIVERGED = "diverged"


def horizon(accuracy_by_length: Mapping[int, float], level: float) -> int | None:
    """Return the longest length whose accuracy is at least `level`, as it is at all shorter ones; None if none is.

    >>> horizon({10: 1.0, 20: 0.95, 50: 0.3, 100: 0.91}, 0.9), horizon({10: 0.5, 20: 1.0}, 0.9)
    (20, None)
    """
    reached = None
    for length, accuracy in sorted(accuracy_by_length.items()):
        if not accuracy >= level:  # also if it is not a number
            break
        reached = length
    return reached


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """One validation during training. Accuracies are normalised: 0 is chance, 1 is perfect."""

    step: int
    train_loss: float
    validation_loss: float
    validation_accuracy: float
    seconds: float
    validation_accuracy_all: float | None = None
    """Over all labels of the samples; None if only their ends have one."""


@dataclass(frozen=True, slots=True)
class Result:
    trial: Trial
    stop_reason: StopReason
    steps: int
    seconds: float
    curve: tuple[CurvePoint, ...]
    test_accuracy: dict[int, float]
    """Normalised accuracy at each tested length."""
    majority: dict[int, float]
    """Normalised accuracy of always giving the commonest answer, at each tested length."""
    parameters: dict[str, Any] = field(repr=False)
    """The trained weights by name (tensors)."""
    test_accuracy_all: dict[int, float] = field(default_factory=dict)
    """Normalised accuracy over all labels of the samples, at each tested length; empty if only their ends have one."""

    @property
    def validation_accuracy(self) -> float:
        return self.curve[-1].validation_accuracy

    @property
    def ood_accuracy(self) -> float:
        return self.test_accuracy[self.trial.test_length]

    @property
    def validation_accuracy_all(self) -> float | None:
        return self.curve[-1].validation_accuracy_all

    @property
    def ood_accuracy_all(self) -> float | None:
        return self.test_accuracy_all.get(self.trial.test_length)

    @property
    def horizons(self) -> dict[str, int | None]:
        """The `horizon` for each of `HORIZONS`, by the name of its column: `horizon_90` and `horizon_99`."""
        return {f"horizon_{percent}": horizon(self.test_accuracy, percent / 100) for percent in HORIZONS}

    def summary(self) -> dict[str, Any]:
        """Return the result as plain values, for JSON. Names in `_raw` are shares of right answers."""
        task, last = self.trial.task, self.curve[-1]
        return {
            "trial_id": self.trial.id,
            "stop_reason": str(self.stop_reason),
            "steps": self.steps,
            "seconds": round(self.seconds, 3),
            "validation_loss": last.validation_loss,
            "validation_accuracy": self.validation_accuracy,
            "validation_accuracy_raw": task.denormalise(self.validation_accuracy),
            "ood_accuracy": self.ood_accuracy,
            "ood_accuracy_raw": task.denormalise(self.ood_accuracy),
            "validation_accuracy_all": self.validation_accuracy_all,
            "ood_accuracy_all": self.ood_accuracy_all,
            **self.horizons,
            "length_curve": {str(length): value for length, value in self.test_accuracy.items()},
            "length_curve_all": {str(length): value for length, value in self.test_accuracy_all.items()},
            "chance": task.chance,
            "majority": {str(length): task.denormalise(value) for length, value in self.majority.items()},
            "trial": self.trial.to_dict(),
        }
