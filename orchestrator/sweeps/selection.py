"""The one place where the best learning rate is chosen, for sweeps that go on from it and for tables that report it.

The paper leaves open what "best" means. Here it is the mean accuracy at 100 inputs over the seeds, and where that is
equal, at 200: well beyond the lengths trained on, so that it prefers what generalises, and not the length that tables
report, so that the choice is not made on the test.
"""

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from orch.sweeps.trial import Trial

if TYPE_CHECKING:
    from pyarrow import Table

LEARNED = 0.95
"""From this accuracy on a model has learned a task; at the test length, it holds there."""
NOT_KNOWN = 0.0
"""Stands for the learning rate of a trial that waits for it; no trial can run with it."""

Row = Mapping[str, Any]
"""A finished trial: at least `COLUMNS`."""

COLUMNS = [
    "trial_id",
    "learning_rate",
    "accuracy_100",
    "accuracy_200",
    "validation_accuracy",
    "ood_accuracy",
    "init_seed",
    "stop_reason",
]


def best_learning_rate(rows: Iterable[Row]) -> float:
    """Of a cell's finished rows, the rate with the highest mean accuracy at 100 inputs.

    Ties go to the higher mean at 200 inputs, to the higher mean validation accuracy, then to the smaller rate, which
    holds at greater lengths more often. A trial that diverged counts as it scored, and one without a score as chance.
    """
    by_rate: dict[float, list[Row]] = {}
    for row in rows:
        by_rate.setdefault(row["learning_rate"], []).append(row)
    assert by_rate, "a cell without results has no best learning rate"

    def merit(rate: float) -> tuple[float, ...]:
        scores = (_mean(by_rate[rate], name) for name in ("accuracy_100", "accuracy_200", "validation_accuracy"))
        return *scores, -rate

    return max(by_rate, key=merit)


def of_best_rate(rows: Sequence[Row]) -> list[Row]:
    """Of a cell's finished rows, those with its best learning rate."""
    rate = best_learning_rate(rows)
    return [row for row in rows if row["learning_rate"] == rate]


def _mean(rows: Sequence[Row], name: str) -> float:
    scores = [row[name] for row in rows]
    scores = [0.0 if score is None or math.isnan(score) else score for score in scores]
    return round(fmean(scores), 9)  # equal scores are a tie, whatever their sum rounds to


@dataclass(frozen=True, slots=True)
class Waiting:
    """In place of an answer, while trials that it needs are unfinished; yielded by a sweep, in place of a trial."""

    reason: str
    """What it waits for."""
    trial: Trial | None = None
    """The trial that waits, all but its learning rate known."""


class Results:
    """What a sweep may ask of finished trials."""

    def __init__(self, load: Callable[[], Mapping[str, Row]]):
        self._load = load

    @classmethod
    def none(cls) -> "Results":
        """Nothing is finished."""
        return cls(dict)

    @classmethod
    def of_table(cls, trials: "Table") -> "Results":
        """Those of a table that was read already and has `COLUMNS` among its columns."""
        return cls(lambda: rows_by_id(trials.select(COLUMNS)))

    @functools.cached_property
    def _rows(self) -> Mapping[str, Row]:
        return self._load()

    def accuracy(self, trial: Trial) -> float | None:
        """At the trial's test length; None while it is unfinished, chance if it has no score."""
        row = self._rows.get(trial.id)
        return None if row is None else _mean([row], "ood_accuracy")

    def best_learning_rate(self, cell: Iterable[Trial | Waiting], sweep: str = "") -> float | Waiting:
        """Among these trials of a sweep, which differ in learning rate and seed; or what it waits for."""
        trials = list(cell)
        known = [trial for trial in trials if isinstance(trial, Trial)]
        finished = [self._rows[trial.id] for trial in known if trial.id in self._rows]
        if trials and len(finished) == len(trials):
            return best_learning_rate(finished)
        found_by = f" that {sweep} finds" if sweep else ""
        return Waiting(f"the best learning rate{found_by}" + (f" for {known[0].label}" if known else ""))


def rows_by_id(trials: "Table") -> dict[str, Row]:
    """Finished trials, each by its id."""
    names, columns = trials.column_names, [column.to_pylist() for column in trials.columns]
    rows = (dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True))
    return {row["trial_id"]: row for row in rows}
