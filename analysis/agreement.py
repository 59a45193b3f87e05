"""How far ours agree with the paper's.

A number counts once. Of the values that the paper gives it, the nearest to ours counts. Where the paper leaves open how
it trained a whole table, one reading counts for all of that table: the one that meets most of its numbers. A number
without any of ours is neither an agreement nor a disagreement: it is counted by itself.
"""

import enum
import operator
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from orch.analysis.aggregate import METRICS, CellStatus, scored
from orch.analysis.comparison import Comparison
from orch.analysis.published import PublishedCell
from orch.sweeps.result import StopReason
from orch.sweeps.selection import LEARNED

TOLERANCE = 0.05
"""Differences up to this are an agreement, unless told otherwise."""


class Side(enum.StrEnum):
    WITHIN = "within"
    BETTER = "better"
    """By more than the tolerance."""
    WORSE = "worse"


@dataclass(frozen=True, slots=True)
class Agreement:
    tolerance: float
    num_distinct: int
    num_partial: int
    """Of those with ours, how many rest on only some of their trials."""
    num_within: int
    num_better: int
    num_worse: int

    @property
    def num_ours(self) -> int:
        return self.num_within + self.num_better + self.num_worse

    @property
    def num_without(self) -> int:
        return self.num_distinct - self.num_ours

    def __str__(self) -> str:
        partial = f", {self.num_partial:,} of them from only some of their trials" if self.num_partial else ""
        return (
            f"{self.num_distinct:,} published numbers, ours for {self.num_ours:,}{partial}:"
            f" {self.num_within:,} within {self.tolerance:g}, {self.num_better:,} better, {self.num_worse:,} worse;"
            f" {self.num_without:,} without ours"
        )


def agreement(comparisons: Collection[Comparison], tolerance: float = TOLERANCE) -> Agreement:
    found = nearest(of_one_reading(comparisons, tolerance))
    counts = Counter(side_of(each, tolerance) for each in found)
    partial = sum(each.summary.status is CellStatus.PARTIAL for each in found)
    return Agreement(tolerance, len(found), partial, counts[Side.WITHIN], counts[Side.BETTER], counts[Side.WORSE])


def disagreements(comparisons: Collection[Comparison], tolerance: float = TOLERANCE) -> list[Comparison]:
    """Where ours differ by more, each number once; the largest difference first."""
    found = [each for each in nearest(of_one_reading(comparisons, tolerance)) if is_beyond(each, tolerance)]
    return sorted(found, key=lambda each: -abs(each.difference or 0.0))


def of_one_reading(comparisons: Collection[Comparison], tolerance: float) -> list[Comparison]:
    """Without the readings of a table that meet fewer of its numbers than another; what was attempted counts first."""
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
    """Each distinct number once: of the values the paper gives it, the one least apart from ours."""
    best: dict[PublishedCell, Comparison] = {}
    for each in comparisons:
        known = best.setdefault(each.distinct, each)
        if _distance(each) < _distance(known):
            best[each.distinct] = each
    return list(best.values())


def is_attempted(comparison: Comparison) -> bool:
    """Whether it had what it needs to be judged.

    Every learning rate had a trial that stopped early or took all its steps; or, where the published model has learned,
    one trial of ours has: the others could add no more than what is missing to 1.
    """
    published, metric = comparison.published, METRICS[comparison.published.split]
    if published.accuracy >= LEARNED and any(scored(row[metric]) >= LEARNED for row in comparison.finished):
        return True
    return _every_rate_ended(comparison)


def is_final(comparison: Comparison, tolerance: float) -> bool:
    """Whether the side on which ours are stays: no learning rate can take away from what is better, and another may
    add to what is worse."""
    side = side_of(comparison, tolerance)
    if side is Side.BETTER:
        return True
    return _every_rate_ended(comparison) if side is Side.WORSE else is_attempted(comparison)


def _every_rate_ended(comparison: Comparison) -> bool:
    as_it_should = (StopReason.EARLY_STOP, StopReason.BUDGET)
    return comparison.learning_rates <= {
        row["learning_rate"] for row in comparison.finished if row["stop_reason"] in as_it_should
    }


def is_beyond(comparison: Comparison, tolerance: float) -> bool:
    return side_of(comparison, tolerance) in (Side.BETTER, Side.WORSE)


def side_of(comparison: Comparison, tolerance: float) -> Side | None:
    """Nothing if there is none of ours."""
    if comparison.difference is None:
        return None
    difference = round(comparison.difference, 9)  # two decimals apart are not further apart by a float's rounding
    if abs(difference) <= tolerance:
        return Side.WITHIN
    return Side.BETTER if difference > 0 else Side.WORSE


def _distance(comparison: Comparison) -> float:
    return float("inf") if comparison.difference is None else abs(comparison.difference)
