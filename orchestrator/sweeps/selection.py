"""The choice of the best learning rate, made only here, for sweeps that continue with it and tables that report it.

The paper leaves open what "best" means. Here it is the highest mean accuracy over the seeds at one length, which is a
fact of the cell: 100 inputs, if that was measured and is shorter than the test; else the longest measured length of at
most half the test length; else the validation set. Such a length is mostly well beyond those trained on, so the choice
prefers models that generalise, and it is never the length of the test, so it is not made on what tables report.
"""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING

from orch.sweeps.measured import Row, accuracies_by_length, diverged, measured
from orch.sweeps.trial import Trial

if TYPE_CHECKING:
    from pyarrow import Table

LEARNED = 0.95
"""Lowest accuracy at which a model counts as having learned a task."""
NOT_KNOWN = 0.0
"""Learning rate of a trial that waits for its learning rate to be chosen; no trial can run with it."""
PREFERRED_LENGTH = 100
"""Length at which learning rates are chosen wherever it is measured and shorter than the test."""
CHANCE_ERRORS = 3
"""Standard errors up to which an accuracy cannot be told from chance, nor two accuracies in validation from each other.

A guess between two answers has a standard error of 1 / sqrt(samples) on the normalised scale, and a guess between more
answers a smaller one: with 1,024 samples, accuracies up to 0.09 count as chance.
"""
VALIDATION = "validation"
_UNKNOWN = float("-inf")
"""Stands for the mean of scores that were not measured, which is worse than any other."""

COLUMNS = [
    "trial_id",
    "learning_rate",
    "validation_accuracy",
    "ood_accuracy",
    "length_curve",
    "test_length",
    "test_samples",
    "init_seed",
    "stop_reason",
]


@dataclass(frozen=True, slots=True)
class SelectionLength:
    """The length at which a cell's learning rate is chosen."""

    choice: int | None
    """Number of inputs; None if the choice is made in validation."""
    tie: int | None = None
    """Number of inputs at which rates that are equal there are compared; None if no such length was measured."""

    @property
    def name(self) -> str:
        """The length in words, such as "100 inputs" or "validation"."""
        return VALIDATION if self.choice is None else f"{self.choice} inputs"


def selection_length(test_length: int, lengths: Iterable[int]) -> SelectionLength:
    """Return where a cell's learning rate is chosen, given the lengths at which all its trials were measured.

    >>> selection_length(500, (10, 20, 50, 100, 200, 500))
    SelectionLength(choice=100, tie=200)
    >>> selection_length(100, (10, 20, 50, 100)).name
    '50 inputs'
    >>> selection_length(15, (10, 15)).name
    'validation'
    """
    shorter = sorted({length for length in lengths if length < test_length})
    halves = [length for length in shorter if 2 * length <= test_length]
    if PREFERRED_LENGTH not in shorter and not halves:
        return SelectionLength(None)
    choice = PREFERRED_LENGTH if PREFERRED_LENGTH in shorter else halves[-1]
    return SelectionLength(choice, next((length for length in shorter if length > choice), None))


@dataclass(frozen=True, slots=True)
class RateChoice:
    """The best learning rate of a cell and how it was found."""

    learning_rate: float
    at: SelectionLength
    rows: list[Row]
    """Finished trials with that learning rate."""


def choose_rate(rows: Iterable[Row]) -> RateChoice:
    """Choose the learning rate with the highest mean accuracy at the cell's selection length.

    Ties go to the higher mean at the next measured length short of the test, then to the higher mean in validation,
    then to the smaller rate, which more often stays accurate at greater lengths. Where no rate can be told from chance,
    rates that are clearly worse than another in validation are left out first. A trial that diverged counts with its
    score, or as chance if it has none; a trial that was not measured does not count. Rows that mix test lengths are
    chosen at a length that all of them share.
    """
    by_rate: dict[float, list[Row]] = {}
    for row in rows:
        by_rate.setdefault(row["learning_rate"], []).append(row)
    assert by_rate, "a cell without results has no best learning rate"
    finished = [row for group in by_rate.values() for row in group]
    at = _length_of(finished)

    def merit(rate: float) -> tuple[float, ...]:
        lengths = (length for length in (at.choice, at.tie) if length is not None)
        return *(_mean_at(by_rate[rate], length) for length in lengths), _mean_in_validation(by_rate[rate]), -rate

    rates = list(by_rate)
    noise = CHANCE_ERRORS / min(row["test_samples"] for row in finished) ** 0.5
    if at.choice is not None and max(_mean_at(group, at.choice) for group in by_rate.values()) <= noise:
        fitted = {rate: _mean_in_validation(group) for rate, group in by_rate.items()}
        rates = [rate for rate in rates if fitted[rate] >= max(fitted.values()) - noise]
    best = max(rates, key=merit)
    return RateChoice(best, at, by_rate[best])


def best_learning_rate(rows: Iterable[Row]) -> float:
    """Return the best learning rate of a cell, given its finished rows."""
    return choose_rate(rows).learning_rate


def _length_of(rows: Sequence[Row]) -> SelectionLength:
    """Return where the rate of these rows is chosen; a diverged trial without any scores leaves that to the others."""
    curves = [(set(accuracies_by_length(row)), row) for row in rows]
    known = [lengths for lengths, row in curves if lengths or not diverged(row)]
    tests = {row["test_length"] for row in rows}
    return selection_length(min(tests), set.intersection(*known) - tests if known else ())


def _mean_at(rows: Iterable[Row], length: int) -> float:
    return _mean(accuracies_by_length(row).get(length, 0.0 if diverged(row) else None) for row in rows)


def _mean_in_validation(rows: Iterable[Row]) -> float:
    return _mean(measured(row, "validation_accuracy") for row in rows)


def _mean(scores: Iterable[float | None]) -> float:
    """Return the mean of the known scores, less than any other mean if there is none."""
    known = [score for score in scores if score is not None]
    return round(fmean(known), 9) if known else _UNKNOWN  # equal scores are a tie, whatever their sum rounds to


@dataclass(frozen=True, slots=True)
class Waiting:
    """Stands for a learning rate, or for a trial with that rate, while trials that decide it are unfinished."""

    reason: str
    """The event that must happen first, such as the choice of a learning rate."""
    trial: Trial | None = None
    """The waiting trial, with every setting but its learning rate."""
    awaits: tuple[Trial, ...] = field(default=(), compare=False, repr=False)
    """The unfinished trials that it waits for, as far as they are known."""


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

    def has(self, trial: Trial) -> bool:
        """Return whether a trial is finished."""
        return trial.id in self._rows

    def accuracy(self, trial: Trial) -> float | None:
        """Return a trial's accuracy at its test length; None while it is unfinished, or if that was not measured."""
        row = self._rows.get(trial.id)
        return None if row is None else measured(row, "ood_accuracy")

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
        reason = f"the best learning rate{found_by}" + (f" for {known[0].label}" if known else "")
        return Waiting(reason, awaits=tuple(trial for trial in known if trial.id not in self._rows))


def rows_by_id(trials: "Table") -> dict[str, Row]:
    """Return the rows of a table of trials by trial id."""
    names, columns = trials.column_names, [column.to_pylist() for column in trials.columns]
    rows = (dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True))
    return {row["trial_id"]: row for row in rows}
