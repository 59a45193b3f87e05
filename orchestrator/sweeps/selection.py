"""The choice of the best learning rate, made only here, for sweeps that continue with it and tables that report it.

The paper leaves open what "best" means. Here it is the highest mean accuracy over the seeds at 100 inputs, and of equal
means the highest at 200. These lengths are well beyond those trained on, so the choice prefers models that generalise,
and they are not the length that tables report, so it is not made on the test.
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
"""Lowest accuracy at which a model counts as having learned a task."""
NOT_KNOWN = 0.0
"""Learning rate of a trial that waits for its learning rate to be chosen; no trial can run with it."""

Row = Mapping[str, Any]
"""A finished trial, with at least the columns `COLUMNS`."""

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
    """Return the learning rate with the highest mean accuracy at 100 inputs, given the finished rows of a cell.

    Ties go to the higher mean at 200 inputs, then to the higher mean validation accuracy, then to the smaller rate,
    which more often stays accurate at greater lengths. A trial that diverged counts with its score, and a trial without
    a score counts as chance.
    """
    by_rate: dict[float, list[Row]] = {}
    for row in rows:
        by_rate.setdefault(row["learning_rate"], []).append(row)
    assert by_rate, "a cell without results has no best learning rate"

    def merit(rate: float) -> tuple[float, ...]:
        scores = (_mean(by_rate[rate], name) for name in ("accuracy_100", "accuracy_200", "validation_accuracy"))
        return *scores, -rate

    return max(by_rate, key=merit)


def rows_of_best_rate(rows: Sequence[Row]) -> list[Row]:
    """Return the finished rows of a cell that were trained at its best learning rate."""
    rate = best_learning_rate(rows)
    return [row for row in rows if row["learning_rate"] == rate]


def _mean(rows: Sequence[Row], name: str) -> float:
    scores = [row[name] for row in rows]
    scores = [0.0 if score is None or math.isnan(score) else score for score in scores]
    return round(fmean(scores), 9)  # equal scores are a tie, whatever their sum rounds to


@dataclass(frozen=True, slots=True)
class Waiting:
    """Stands for a learning rate, or for a trial with that rate, while trials that decide it are unfinished."""

    reason: str
    """The event that must happen first, such as the choice of a learning rate."""
    trial: Trial | None = None
    """The waiting trial, with every setting but its learning rate."""


class Results:
    """The finished trials, which a sweep may ask for accuracies and best learning rates."""

    def __init__(self, load: Callable[[], Mapping[str, Row]]):
        self._load = load

    @classmethod
    def none(cls) -> "Results":
        """Return results without any finished trial."""
        return cls(dict)

    @classmethod
    def of_table(cls, trials: "Table") -> "Results":
        """Return the results in a table of trials that has at least the columns `COLUMNS`."""
        return cls(lambda: rows_by_id(trials.select(COLUMNS)))

    @functools.cached_property
    def _rows(self) -> Mapping[str, Row]:
        return self._load()

    def accuracy(self, trial: Trial) -> float | None:
        """Return a trial's accuracy at its test length: None while it is unfinished, chance if it has no score."""
        row = self._rows.get(trial.id)
        return None if row is None else _mean([row], "ood_accuracy")

    def best_learning_rate(self, cell: Iterable[Trial | Waiting], sweep: str = "") -> float | Waiting:
        """Return the best rate of trials that differ only in rate and seed, or `Waiting` if some are unfinished.

        `sweep` is the sweep that the trials belong to, for the message about what is waited for.
        """
        trials = list(cell)
        known = [trial for trial in trials if isinstance(trial, Trial)]
        finished = [self._rows[trial.id] for trial in known if trial.id in self._rows]
        if trials and len(finished) == len(trials):
            return best_learning_rate(finished)
        found_by = f" that {sweep} finds" if sweep else ""
        return Waiting(f"the best learning rate{found_by}" + (f" for {known[0].label}" if known else ""))


def rows_by_id(trials: "Table") -> dict[str, Row]:
    """Return the rows of a table of trials by trial id."""
    names, columns = trials.column_names, [column.to_pylist() for column in trials.columns]
    rows = (dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True))
    return {row["trial_id"]: row for row in rows}
