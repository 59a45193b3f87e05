"""The summary of a cell: many trials as one number for each metric.

There are two readings, shown side by side everywhere. The paper's reading is the best over learning rates and seeds.
Ours is the share of the seeds of one learning rate that learn, and their mean; that rate is chosen at a length that no
table reports (see `orch.sweeps.selection`). Both are over the trials in which the metric was measured, and None if
there are none. A trial that diverged counts with its score, or as chance if it has no score; summaries count these
trials.
"""

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from orch.analysis.published import OOD, VALIDATION
from orch.analysis.spread import Spread
from orch.analysis.statistics import BEST_OF, Interval, Share, bootstrap_mean, expected_best, share_failing
from orch.sweeps.measured import Row, diverged, length_of, measured
from orch.sweeps.selection import COLUMNS as SELECTION_COLUMNS
from orch.sweeps.selection import LEARNED, choose_rate

COLUMNS = (*SELECTION_COLUMNS, "steps_trained")
"""Columns of a finished trial that summaries need."""

METRICS = {VALIDATION: "validation_accuracy", OOD: "ood_accuracy"}
LOWER_IS_BETTER = {"steps_trained", "seconds"}


class CellStatus(enum.StrEnum):
    """The state of a cell by its finished trials."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    """Some trials are not finished."""
    FAILED = "failed"
    """No trial is finished, and the last attempt at one of them went wrong."""
    MISSING = "missing"
    """No trial is finished, and none has failed."""


@dataclass(frozen=True, slots=True)
class Score:
    """One metric of a cell. Accuracies are normalised: 0 is chance, 1 is perfect.

    Every number is over the trials in which the metric was measured, and None if there are none.
    """

    best: float | None
    """Best value over learning rates and seeds: the paper's reading."""
    best_trial: str | None
    mean: float | None
    """Mean over the seeds of the chosen learning rate: our reading."""
    spread: float | None
    """Spread over these seeds, by default their standard deviation; None if there are fewer than two."""
    num_measured: int
    """Number of finished trials in which the metric was measured."""
    expected_best: float | None = None
    """Expected best of a fixed number of trials, by default three; None if fewer were measured."""
    mean_interval: Interval | None = None
    """Bootstrap interval of the mean; None if there are fewer than two seeds."""
    learned: Share | None = None
    """Seeds of the chosen learning rate that learned; None if the metric is no accuracy, or was not measured."""


@dataclass(frozen=True, slots=True)
class CellSummary:
    """Counts and scores of a cell."""

    num_planned: int
    num_done: int
    num_failed: int
    num_diverged: int
    learning_rate: float | None = None
    """The chosen learning rate."""
    chosen_at: str | None = None
    """Where that rate was chosen, such as "100 inputs" or "validation"."""
    num_seeds: int = 0
    """Number of trials finished with that learning rate."""
    scores: dict[str, Score] | None = None
    """Scores by metric; None if no trial is finished."""
    failing: Share | None = None
    """Seeds of that rate below 0.95 at the test length, of those perfect at trained lengths; None if none is."""

    @property
    def status(self) -> CellStatus:
        """The state of the cell."""
        if self.num_done:
            return CellStatus.COMPLETE if self.num_done >= self.num_planned else CellStatus.PARTIAL
        return CellStatus.FAILED if self.num_failed else CellStatus.MISSING

    @property
    def remark(self) -> str:
        """A note for readers about unfinished, failed or diverged trials; empty if there are none."""
        remarks = []
        if self.status is not CellStatus.COMPLETE:
            remarks.append(f"{self.status}: {self.num_done} of {self.num_planned} trials")
        if self.num_failed and self.status is not CellStatus.FAILED:
            remarks.append(f"{self.num_failed} failed")
        if self.num_diverged:
            remarks.append(f"{self.num_diverged} diverged")
        for split, score in (self.scores or {}).items():
            if score.num_measured < self.num_done:
                name = {VALIDATION: "validation", OOD: "the test"}.get(split, split)
                remarks.append(f"{name} measured in {score.num_measured} of {self.num_done} trials")
        return ", ".join(remarks)


def summarise(
    rows: Iterable[Row],
    num_planned: int | None = None,
    num_failed: int = 0,
    metrics: Mapping[str, str] = METRICS,
    spread: Spread = Spread.SD,
    best_of: int = BEST_OF,
) -> CellSummary:
    """Summarise the finished trials of a cell.

    `num_planned` is the number of trials that the cell should have; by default, those that are finished. `metrics` are
    the metrics to score, by the name of the score: columns, or `accuracy_` and a tested length. `best_of` is the number
    of trials of which the expected best is computed.
    """
    finished = list(rows)
    counts: dict[str, Any] = {
        "num_planned": len(finished) if num_planned is None else num_planned,
        "num_done": len(finished),
        "num_failed": num_failed,
        "num_diverged": sum(map(diverged, finished)),
    }
    if not finished:
        return CellSummary(**counts)
    chosen = choose_rate(finished)
    return CellSummary(
        **counts,
        learning_rate=chosen.learning_rate,
        chosen_at=chosen.at.name,
        num_seeds=len(chosen.rows),
        scores={split: _score(finished, chosen.rows, metric, spread, best_of) for split, metric in metrics.items()},
        failing=share_failing(
            ((measured(row, METRICS[VALIDATION]), measured(row, METRICS[OOD])) for row in chosen.rows), LEARNED
        ),
    )


def _score(finished: Sequence[Row], chosen: Sequence[Row], metric: str, spread: Spread, best_of: int) -> Score:
    known = [(value, row["trial_id"]) for row in finished if (value := measured(row, metric)) is not None]
    lowest = metric in LOWER_IS_BETTER
    best, best_trial = (min if lowest else max)(known, key=lambda item: item[0], default=(None, None))
    values = [value for row in chosen if (value := measured(row, metric)) is not None]
    is_accuracy = metric in METRICS.values() or length_of(metric) is not None
    return Score(
        best=best,
        best_trial=best_trial,
        mean=mean_of(values),
        spread=spread.of(values),
        num_measured=len(known),
        expected_best=expected_best([value for value, _ in known], best_of, lowest),
        mean_interval=bootstrap_mean(values),
        learned=Share.at_least(values, LEARNED) if is_accuracy else None,
    )


def mean_of(values: Iterable[float | None]) -> float | None:
    """Return the mean of the known values; None if there are none."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def best_first(rows: Iterable[Row], metric: str) -> list[Row]:
    """Return rows sorted by a metric, the highest first and those in which it was not measured last."""

    def order(row: Row) -> tuple[bool, float]:
        value = measured(row, metric)
        return value is None, 0.0 if value is None else -value

    return sorted(rows, key=order)


def where_chosen(places: Iterable[str | None]) -> str:
    """Return where learning rates were chosen, for a caption: "at 100 inputs", or "at 50 inputs or in validation"."""
    found = sorted({place for place in places if place}, key=lambda place: (not place[0].isdigit(), len(place), place))
    return " or ".join(f"at {place}" if place[0].isdigit() else f"in {place}" for place in found)
