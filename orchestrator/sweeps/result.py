"""The result of a trial."""

import enum
from dataclasses import dataclass, field
from typing import Any

from orch.sweeps.trial import Trial


class StopReason(enum.StrEnum):
    EARLY_STOP = "early_stop"
    BUDGET = "budget"
    DIVERGED = "diverged"


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """One validation during training. Accuracies are normalised: 0 is chance, 1 is perfect."""

    step: int
    train_loss: float
    validation_loss: float
    validation_accuracy: float
    seconds: float


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

    @property
    def validation_accuracy(self) -> float:
        return self.curve[-1].validation_accuracy

    @property
    def ood_accuracy(self) -> float:
        return self.test_accuracy[self.trial.test_length]

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
            "length_curve": {str(length): value for length, value in self.test_accuracy.items()},
            "chance": task.chance,
            "majority": {str(length): task.denormalise(value) for length, value in self.majority.items()},
            "trial": self.trial.to_dict(),
        }
