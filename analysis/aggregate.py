"""The summary of a cell: many trials as one number for each metric.

There are two readings, shown side by side everywhere. The paper's reading is the best over learning rates and seeds.
Ours is the mean over the seeds of the learning rate chosen by accuracy at 100 inputs, which no table reports. A trial
that diverged counts with its score, or as chance if it has no score; summaries count these trials.
"""

import enum
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean, stdev

from orch.analysis.published import OOD, VALIDATION
from orch.sweeps.result import StopReason
from orch.sweeps.selection import COLUMNS as SELECTION_COLUMNS
from orch.sweeps.selection import Row, rows_of_best_rate

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
    """One metric of a cell. Accuracies are normalised: 0 is chance, 1 is perfect."""

    best: float
    """Best value over learning rates and seeds: the paper's reading."""
    best_trial: str
    mean: float
    """Mean over the seeds of the chosen learning rate: our reading."""
    spread: float | None
    """Standard deviation over these seeds; None if there is only one."""


@dataclass(frozen=True, slots=True)
class CellSummary:
    """Counts and scores of a cell."""

    num_planned: int
    num_done: int
    num_failed: int
    num_diverged: int
    learning_rate: float | None = None
    """Learning rate chosen by the mean accuracy at 100 inputs."""
    num_seeds: int = 0
    """Number of trials finished with that learning rate."""
    scores: dict[str, Score] | None = None
    """Scores by metric; None if no trial is finished."""

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
        return ", ".join(remarks)


def summarise(
    rows: Iterable[Row], num_planned: int | None = None, num_failed: int = 0, metrics: Mapping[str, str] = METRICS
) -> CellSummary:
    """Summarise the finished trials of a cell.

    `num_planned` is the number of trials that the cell should have; by default, those that are finished. `metrics` are
    the columns to score, by the name of the score.
    """
    finished = list(rows)
    counts = {
        "num_planned": len(finished) if num_planned is None else num_planned,
        "num_done": len(finished),
        "num_failed": num_failed,
        "num_diverged": sum(row["stop_reason"] == StopReason.DIVERGED for row in finished),
    }
    if not finished:
        return CellSummary(**counts)
    chosen = rows_of_best_rate(finished)
    scores = {split: _score(finished, chosen, metric) for split, metric in metrics.items()}
    return CellSummary(**counts, learning_rate=chosen[0]["learning_rate"], num_seeds=len(chosen), scores=scores)


def _score(finished: list[Row], chosen: list[Row], metric: str) -> Score:
    best_of = min if metric in LOWER_IS_BETTER else max
    best = best_of(finished, key=lambda row: scored(row[metric]))
    values = [scored(row[metric]) for row in chosen]
    spread = stdev(values) if len(values) > 1 else None
    return Score(scored(best[metric]), best["trial_id"], fmean(values), spread)


def scored(accuracy: float | None) -> float:
    """Return the accuracy that a trial counts with: a trial without a score counts as chance."""
    return 0.0 if accuracy is None or math.isnan(accuracy) else accuracy
