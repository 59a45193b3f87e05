"""The strategy that finds the smallest value of a list that reaches a level: parallel bisection with pruning.

It assumes that every value above one that reaches the level reaches it too. A value whose points were pruned counts as
missing the level for now. The value just below the answer is trained to the end before the answer is given, because the
smallest value that learns is often the slowest.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orch.search.history import Point, PointResult, PointState
from orch.search.space import Value
from orch.search.strategy import NextPoint


@dataclass(frozen=True, slots=True)
class Bracket:
    """The bounds of the answer that are known so far, as places in the list of values."""

    missing: int
    """The largest value below `reaching` that misses the level; -1 if none is known."""
    reaching: int
    """The smallest value that reaches the level; one past the list if none is known."""
    surely_missing: int
    """The largest value below `reaching` that was trained to the end and misses the level."""

    @property
    def certain(self) -> bool:
        return self.missing == self.surely_missing


class Smallest:
    """Finds the smallest value of the setting `name` whose objective is at least `at_least`."""

    def __init__(self, name: str, num_points: Mapping[Value, int], at_least: float):
        """`num_points` is the number of points of each value before it counts as missing the level."""
        self.name, self.values, self.at_least = name, list(num_points), at_least
        self.points_at = list(num_points.values())
        self.num_points = sum(self.points_at)

    def place(self, params: Mapping[str, Value]) -> int:
        return self.values.index(params[self.name])

    def bracket(self, results: Sequence[PointResult]) -> Bracket:
        """Return what the results say about the answer."""
        at = self._by_place(results)
        good = [place for place, found in at.items() if any(map(self.reaches, found))]
        reaching = min(good, default=len(self.values))
        tried = [place for place, found in at.items() if len(found) >= self.points_at[place] and place < reaching]
        surely = [place for place in tried if all(each.state is PointState.FINISHED for each in at[place])]
        return Bracket(max(tried, default=-1), reaching, max(surely, default=-1))

    def reaches(self, result: PointResult) -> bool:
        return result.value is not None and result.value >= self.at_least

    def _by_place(self, results: Sequence[PointResult]) -> dict[int, list[PointResult]]:
        found: dict[int, list[PointResult]] = {}
        for each in results:
            if each.state is not PointState.INVALID:
                found.setdefault(self.place(each.params), []).append(each)
        return found

    def next(self, results: Sequence[PointResult], under_way: Sequence[Point]) -> NextPoint | None:
        known = self.bracket(results)
        at = self._by_place(results)
        num_running = dict.fromkeys(range(len(self.values)), 0)
        for point in under_way:
            num_running[self.place(point.params)] += 1
        between = range(known.missing + 1, known.reaching)
        begun = [place for place in between if num_running[place] or at.get(place)]
        for place in begun:
            if num_running[place] + len(at.get(place, ())) < self.points_at[place]:
                return NextPoint({self.name: self.values[place]})
        if between:
            middle = _middle_of_widest_gap([known.missing, *begun, known.reaching])
            return None if middle is None else NextPoint({self.name: self.values[middle]})
        if known.certain:
            return None
        running = {point.key for point in under_way}
        for each in at[known.missing]:
            if each.state is PointState.PRUNED and each.key not in running:
                return NextPoint(each.params, to_the_end=True)
        return None

    def pointless(self, point: Point, results: Sequence[PointResult]) -> str:
        known = self.bracket(results)
        place = self.place(point.params)
        name = self.name.replace("_", " ")
        if place > known.reaching:
            return f"{name} {self.values[known.reaching]} reaches the level"
        if place < known.surely_missing:
            return f"{name} {self.values[known.surely_missing]} misses the level"
        return ""

    def answer(self, results: Sequence[PointResult]) -> PointResult | None:
        """Return the best point of the smallest value that reaches the level, if one does."""
        found = [each for each in results if self.reaches(each)]
        return min(found, key=lambda each: (self.place(each.params), -(each.value or 0.0)), default=None)

    def is_settled(self, results: Sequence[PointResult]) -> bool:
        """Return whether the value below the answer is known to miss the level, or does not exist."""
        known = self.bracket(results)
        return known.reaching - known.missing == 1 and known.certain


def _middle_of_widest_gap(places: Sequence[int]) -> int | None:
    """Return the middle of the lowest of the widest gaps; None if there is no gap."""
    gaps = [(high - low, -low) for low, high in itertools.pairwise(places)]
    width, low = max(gaps)
    return None if width < 2 else -low + width // 2


@dataclass(frozen=True, slots=True)
class StrategyComparison:
    """Training steps that other strategies would take to the same answer."""

    full_grid: int
    bisection: int
    num_assumed: int
    """Values that were never trained to the end. They count like the nearest value on the same side of the answer that
    was, and with their whole budget if there is none."""


def compare(strategy: Smallest, steps: Mapping[int, int], budget: int, answer: int) -> StrategyComparison:
    """Estimate the cost of a full grid and of plain bisection.

    `steps` are those of values trained to the end, by place; `answer` is a place, or one past the list.
    """
    costs = []
    for place in range(len(strategy.values)):
        same_side = [known for known in steps if (known >= answer) == (place >= answer)]
        nearest = min(same_side, key=lambda known: abs(known - place), default=None)
        costs.append(budget if nearest is None else steps[nearest])
    low, high, bisection = -1, len(costs), 0
    while high - low > 1:
        middle = low + (high - low) // 2
        bisection += costs[middle]
        low, high = (low, middle) if middle >= answer else (middle, high)
    return StrategyComparison(sum(costs), bisection, len(costs) - len(steps))
