"""Strategies, which choose the next point from the results so far. They have no state."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from orch.search.history import Point, PointResult, PointState
from orch.search.space import Params


@dataclass(frozen=True, slots=True)
class NextPoint:
    """The settings of the next point that are fixed. The sampler chooses the others."""

    fixed: Params = field(default_factory=dict)
    to_the_end: bool = False
    """Whether to train it without pruning; it may have been pruned before."""


class Strategy(Protocol):
    """Decides which points a search trains."""

    num_points: int
    """The largest number of points it may ask for."""

    def next(self, results: Sequence[PointResult], under_way: Sequence[Point]) -> NextPoint | None:
        """Return the next point to train; None if it depends on points under way, or if the answer is known."""
        ...

    def pointless(self, point: Point, results: Sequence[PointResult]) -> str:
        """Return why training a point further is useless; empty if it is not."""
        ...


class Best:
    """Finds the best of a number of points, all of which the sampler chooses."""

    def __init__(self, num_points: int):
        self.num_points = num_points

    def next(self, results: Sequence[PointResult], under_way: Sequence[Point]) -> NextPoint | None:
        num_taken = sum(each.state is not PointState.INVALID for each in results) + len(under_way)
        return NextPoint() if num_taken < self.num_points else None

    def pointless(self, point: Point, results: Sequence[PointResult]) -> str:
        return ""
