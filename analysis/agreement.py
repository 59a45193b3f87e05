"""How far ours agree with the paper's.

The paper gives some numbers twice, with different values, and leaves open how it read others. Wherever there is a
choice, the pair that comes nearest counts, and a number counts once. One without any of ours is neither an agreement
nor a disagreement: it is counted by itself.
"""

import enum
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from analysis.aggregate import Status
from analysis.comparison import Comparison
from analysis.published import PublishedCell

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


def agreement(comparisons: Iterable[Comparison], tolerance: float = TOLERANCE) -> Agreement:
    found = nearest(comparisons)
    counts = Counter(side_of(each, tolerance) for each in found)
    partial = sum(each.summary.status is Status.PARTIAL for each in found)
    return Agreement(tolerance, len(found), partial, counts[Side.WITHIN], counts[Side.BETTER], counts[Side.WORSE])


def disagreements(comparisons: Iterable[Comparison], tolerance: float = TOLERANCE) -> list[Comparison]:
    """Where ours differ by more, each number once; the largest difference first."""
    found = [each for each in nearest(comparisons) if is_beyond(each, tolerance)]
    return sorted(found, key=lambda each: -abs(each.difference or 0.0))


def nearest(comparisons: Iterable[Comparison]) -> list[Comparison]:
    """Each distinct number once: of its readings, and of the values the paper gives it, the pair least apart."""
    best: dict[PublishedCell, Comparison] = {}
    for each in comparisons:
        known = best.setdefault(each.distinct, each)
        if _distance(each) < _distance(known):
            best[each.distinct] = each
    return list(best.values())


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
