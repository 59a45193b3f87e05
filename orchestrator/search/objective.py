"""The objective of a search: a metric of trials, aggregated over the seeds of a point."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from orch.core.errors import UnknownName
from orch.sweeps.measured import length_of, measured
from orch.sweeps.trial import Trial

AGGREGATES: dict[str, Callable[[Iterable[float]], float]] = {"mean": fmean, "median": median, "min": min, "max": max}
"""Ways to aggregate the metric over the seeds."""

DEFAULT_METRIC = "accuracy_100"
_SMALLER_IS_BETTER = ("validation_loss", "train_loss", "steps_trained", "seconds")
_PLAIN = ("validation_accuracy", *_SMALLER_IS_BETTER)
COLUMNS = ("trial_id", "steps_trained", "stop_reason", "ood_accuracy", "length_curve", *dict.fromkeys(_PLAIN))
"""The columns of a finished trial that an objective may need."""


@dataclass(frozen=True, slots=True)
class Objective:
    metric: str = DEFAULT_METRIC
    aggregate: str = "mean"

    @property
    def maximised(self) -> bool:
        return self.metric not in _SMALLER_IS_BETTER

    @property
    def length(self) -> int | None:
        return length_of(self.metric)

    @property
    def description(self) -> str:
        what = f"accuracy at {self.length} inputs" if self.length else self.metric.replace("_", " ")
        return f"{self.aggregate} {what}"

    def problems(self, trial: Trial) -> list[str]:
        """Return why a trial does not measure the objective, or why nothing may be tuned on it; empty if neither."""
        others = [length for length in trial.tested_lengths if length != trial.test_length]
        instead = f"accuracy_{max(others)}" if others else "validation_accuracy"
        if self.metric == "ood_accuracy" or self.length == trial.test_length:
            return [
                f"accuracy at {trial.test_length} inputs is the test, which nothing may be tuned on: search by"
                f" {instead}; the test is shown beside it"
            ]
        if self.length is None and self.metric not in _PLAIN:
            return [str(UnknownName("metric", self.metric, [*_PLAIN, *(f"accuracy_{length}" for length in others)]))]
        if self.length is not None and self.length not in trial.tested_lengths:
            problem = f"accuracy at {self.length} inputs is not measured"
            return [f"{problem}: add it to --curve-lengths, or use --metric {instead}"]
        return []

    def over(self, values: Iterable[float]) -> float:
        return float(AGGREGATES[self.aggregate](values))

    def value(self, rows: Sequence[Mapping[str, Any]]) -> float | None:
        """Return the objective of a point, given the rows of all its trials; None if one was not measured.

        An accuracy that a diverged trial lacks is chance; a loss or a time that is not finite was not measured.
        """
        return self._aggregate(rows, self.metric)

    def better(self, one: float, other: float) -> bool:
        return one > other if self.maximised else one < other

    def test(self, rows: Sequence[Mapping[str, Any]]) -> float | None:
        """Aggregate the accuracy at the test length. It is shown to people, and never used to choose points."""
        return self._aggregate(rows, "ood_accuracy")

    def _aggregate(self, rows: Sequence[Mapping[str, Any]], metric: str) -> float | None:
        values = [measured(row, metric) for row in rows]
        known = [value for value in values if value is not None]
        return self.over(known) if len(known) == len(values) else None
