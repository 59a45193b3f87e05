"""A trial in training, as its worker reports it to the driver and the driver to the store."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orch.sweeps.result import CurvePoint

MOST_POINTS = 40
"""Points of a published curve: enough for a chart, and few enough for a report every few seconds."""

PublishedPoint = tuple[int, float | None, float | None]
"""Step, loss and accuracy of a validation; None for a number that is not finite."""


@dataclass(frozen=True, slots=True)
class RunningTrial:
    """The progress of a trial in training."""

    trial_id: str
    step: int
    steps: int
    """Training steps at most."""
    first_step: int = 0
    """The step at which this attempt began, from a checkpoint or from 0."""
    train_loss: float | None = None
    """Loss at the last validation; None before the first, and if it is not a number."""
    validation_accuracy: float | None = None
    """Accuracy at the last validation."""
    label: str = ""
    """Its model, task, learning rate and seed, for people; empty until the driver adds it."""
    curve: tuple[PublishedPoint, ...] = ()
    """Its validations so far, at most `MOST_POINTS` of them and always the last; empty if they are not published."""

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "RunningTrial":
        """Return a trial from the values that `to_dict` returned, perhaps in an earlier version with fewer fields."""
        known = {name: values[name] for name in cls.__dataclass_fields__ if name in values}
        return cls(**known | {"curve": tuple(map(tuple, known.get("curve", ())))})

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can express."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}  # asdict would copy the curve
        for name in ("train_loss", "validation_accuracy"):
            if values[name] is not None and not math.isfinite(values[name]):
                values[name] = None
        return values

    @property
    def text(self) -> str:
        """Its step, loss and accuracy, for people."""
        parts = [f"step {self.step:,} of {self.steps:,}"]
        if self.train_loss is not None:
            parts.append(f"loss {self.train_loss:.3g}")
        if self.validation_accuracy is not None:
            parts.append(f"accuracy {self.validation_accuracy:.2f}")
        return ", ".join(parts)

    @property
    def share_done(self) -> float:
        return min(1.0, self.step / self.steps)

    @property
    def share_done_here(self) -> float:
        """The share of its steps that this attempt has trained."""
        return min(1.0, (self.step - self.first_step) / self.steps)


def published_curve(curve: Sequence[CurvePoint]) -> tuple[PublishedPoint, ...]:
    """Thin a curve out to `MOST_POINTS` points, evenly and with its last point."""
    stride = -(-len(curve) // MOST_POINTS) if curve else 1
    kept = curve[(len(curve) - 1) % stride :: stride] if curve else ()
    return tuple((point.step, _finite(point.train_loss), _finite(point.validation_accuracy)) for point in kept)


def _finite(value: float) -> float | None:
    return float(f"{value:.4g}") if math.isfinite(value) else None
