"""Agreement between our numbers and the published ones.

A published number counts once. If the paper gives several values for it, the value nearest to ours counts. Where the
paper leaves open how a whole table was trained, one reading counts for the table: the one that meets most of its
numbers. A published number without results of ours is counted separately, as neither agreement nor disagreement.
"""

import enum
import operator
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from orch.analysis.aggregate import METRICS, CellStatus
from orch.analysis.comparison import Comparison
from orch.analysis.published import PublishedCell
from orch.sweeps.measured import measured
from orch.sweeps.result import StopReason
from orch.sweeps.selection import LEARNED

TOLERANCE = 0.05
"""Default for the largest difference that counts as agreement."""


class Side(enum.StrEnum):
    """The side of the published number on which ours lies."""

    WITHIN = "within"
    BETTER = "better"
    """Better by more than the tolerance."""
    WORSE = "worse"
    """Worse by more than the tolerance."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Counts of the published numbers that we meet and miss."""

    tolerance: float
    num_distinct: int
    num_partial: int
    """Numbers of ours with unfinished trials."""
    num_within: int
    num_better: int
    num_worse: int

    @property
    def num_ours(self) -> int:
        """Published numbers that we have a result for."""
        return self.num_within + self.num_better + self.num_worse

    @property
    def num_without(self) -> int:
        """Published numbers that we have no result for."""
        return self.num_distinct - self.num_ours

    def __str__(self) -> str:
        partial = f", {self.num_partial:,} of them from only some of their trials" if self.num_partial else ""
        return (
            f"{self.num_distinct:,} published numbers, ours for {self.num_ours:,}{partial}:"
            f" {self.num_within:,} within {self.tolerance:g}, {self.num_better:,} better, {self.num_worse:,} worse;"
            f" {self.num_without:,} without ours"
        )


def agreement(comparisons: Collection[Comparison], tolerance: float = TOLERANCE) -> Agreement:
    """Count the published numbers by the side on which ours lie."""
    found = nearest(of_one_reading(comparisons, tolerance))
    counts = Counter(side_of(each, tolerance) for each in found)
    partial = sum(each.summary.status is CellStatus.PARTIAL for each in found)
    return Agreement(tolerance, len(found), partial, counts[Side.WITHIN], counts[Side.BETTER], counts[Side.WORSE])


def disagreements(comparisons: Collection[Comparison], tolerance: float = TOLERANCE) -> list[Comparison]:
    """Return the comparisons that differ by more than the tolerance, the largest difference first."""
    found = [each for each in nearest(of_one_reading(comparisons, tolerance)) if is_beyond(each, tolerance)]
    return sorted(found, key=lambda each: -abs(each.difference or 0.0))


def of_one_reading(comparisons: Collection[Comparison], tolerance: float) -> list[Comparison]:
    """Keep, for each table with several readings, only the reading that meets most of its attempted numbers."""
    merits: dict[str, dict[str, tuple[int, ...]]] = {}
    for each in {(each.distinct, each.reading): each for each in comparisons if each.reading}.values():
        readings, side = merits.setdefault(each.distinct.table, {}), side_of(each, tolerance)
        is_within, attempted = side is Side.WITHIN, is_final(each, tolerance)
        merit = is_within and attempted, attempted, is_within, side is not None
        known = readings.get(each.reading, (0,) * len(merit))
        readings[each.reading] = tuple(map(operator.add, known, merit))
    best = {table: max(readings, key=lambda name: readings[name]) for table, readings in merits.items()}
    return [each for each in comparisons if not each.reading or each.reading == best[each.distinct.table]]


def nearest(comparisons: Iterable[Comparison]) -> list[Comparison]:
    """Return one comparison for each distinct number: of the published values, the one nearest to ours."""
    best: dict[PublishedCell, Comparison] = {}
    for each in comparisons:
        known = best.setdefault(each.distinct, each)
        if _distance(each) < _distance(known):
            best[each.distinct] = each
    return list(best.values())


def is_attempted(comparison: Comparison) -> bool:
    """Return whether enough was trained to judge our number.

    Either every learning rate has a trial that stopped early or took all its steps, or both the published
    model and one of our trials have learned the task, so that other trials could hardly improve on it.
    """
    published, metric = comparison.published, METRICS[comparison.published.split]
    scores = [score for row in comparison.finished if (score := measured(row, metric)) is not None]
    if published.accuracy >= LEARNED and any(score >= LEARNED for score in scores):
        return True
    return _every_rate_ended(comparison)


def is_final(comparison: Comparison, tolerance: float) -> bool:
    """Return whether further trials could not change the side on which our number lies.

    A better number stays better whatever is trained, but another learning rate may improve a worse one.
    """
    side = side_of(comparison, tolerance)
    if side is Side.BETTER:
        return True
    return _every_rate_ended(comparison) if side is Side.WORSE else is_attempted(comparison)


def _every_rate_ended(comparison: Comparison) -> bool:
    planned_ends = (StopReason.EARLY_STOP, StopReason.BUDGET)
    return comparison.learning_rates <= {
        row["learning_rate"] for row in comparison.finished if row["stop_reason"] in planned_ends
    }


def is_beyond(comparison: Comparison, tolerance: float) -> bool:
    """Return whether our number differs by more than the tolerance."""
    return side_of(comparison, tolerance) in (Side.BETTER, Side.WORSE)


def side_of(comparison: Comparison, tolerance: float) -> Side | None:
    """Return the side on which our number lies; None if there is no result."""
    if comparison.difference is None:
        return None
    difference = round(comparison.difference, 9)  # a difference of exactly the tolerance must not exceed it by rounding
    if abs(difference) <= tolerance:
        return Side.WITHIN
    return Side.BETTER if difference > 0 else Side.WORSE


def _distance(comparison: Comparison) -> float:
    return float("inf") if comparison.difference is None else abs(comparison.difference)
