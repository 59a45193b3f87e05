"""The smallest value of an ordered list that reaches a level: bisection that may be pruned and run in parallel.

The list is taken to be ordered: what a value reaches, larger ones reach, and what it misses, smaller ones miss. A value
that was only pruned counts as missing it for the time being: the one just below the answer is trained to the end before
the answer is given, because the smallest value that learns is often the slowest of those that do.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orch.search.history import Point, PointState, Told
from orch.search.space import Value
from orch.search.strategy import Ask


@dataclass(frozen=True, slots=True)
class Bracket:
    """What is known: places in the list of values."""

    missing: int
    """The largest value below `reaching` that misses the level; -1 if none is known."""
    reaching: int
    """The smallest that reaches it; one past the list if none is known."""
    surely_missing: int
    """The largest such value that was trained to the end."""

    @property
    def certain(self) -> bool:
        return self.missing == self.surely_missing


class Smallest:
    def __init__(self, name: str, num_points: Mapping[Value, int], at_least: float):
        """`num_points` says how many points each value gets before it counts as missing the level."""
        self.name, self.values, self.at_least = name, list(num_points), at_least
        self.points_at = list(num_points.values())
        self.num_points = sum(self.points_at)

    def place(self, params: Mapping[str, Value]) -> int:
        return self.values.index(params[self.name])

    def bracket(self, told: Sequence[Told]) -> Bracket:
        at = self._by_place(told)
        good = [place for place, found in at.items() if any(map(self.reaches, found))]
        reaching = min(good, default=len(self.values))
        tried = [place for place, found in at.items() if len(found) >= self.points_at[place] and place < reaching]
        surely = [place for place in tried if all(each.state is PointState.FINISHED for each in at[place])]
        return Bracket(max(tried, default=-1), reaching, max(surely, default=-1))

    def reaches(self, told: Told) -> bool:
        return told.value is not None and told.value >= self.at_least

    def _by_place(self, told: Sequence[Told]) -> dict[int, list[Told]]:
        found: dict[int, list[Told]] = {}
        for each in told:
            if each.state is not PointState.INVALID:
                found.setdefault(self.place(each.params), []).append(each)
        return found

    def next(self, told: Sequence[Told], under_way: Sequence[Point]) -> Ask | None:
        known = self.bracket(told)
        at = self._by_place(told)
        num_flying = dict.fromkeys(range(len(self.values)), 0)
        for point in under_way:
            num_flying[self.place(point.params)] += 1
        between = range(known.missing + 1, known.reaching)
        begun = [place for place in between if num_flying[place] or at.get(place)]
        for place in begun:
            if num_flying[place] + len(at.get(place, ())) < self.points_at[place]:
                return Ask({self.name: self.values[place]})
        if between:
            middle = _middle_of_widest_gap([known.missing, *begun, known.reaching])
            return None if middle is None else Ask({self.name: self.values[middle]})
        if known.certain:
            return None
        flying = {point.key for point in under_way}
        for each in at[known.missing]:
            if each.state is PointState.PRUNED and each.key not in flying:
                return Ask(each.params, to_the_end=True)
        return None

    def pointless(self, point: Point, told: Sequence[Told]) -> str:
        known = self.bracket(told)
        place = self.place(point.params)
        name = self.name.replace("_", " ")
        if place > known.reaching:
            return f"{name} {self.values[known.reaching]} reaches the level"
        if place < known.surely_missing:
            return f"{name} {self.values[known.surely_missing]} misses the level"
        return ""

    def answer(self, told: Sequence[Told]) -> Told | None:
        """The best point of the smallest value that reaches the level, if one does."""
        found = [each for each in told if self.reaches(each)]
        return min(found, key=lambda each: (self.place(each.params), -(each.value or 0.0)), default=None)

    def is_settled(self, told: Sequence[Told]) -> bool:
        """Whether the value below the answer is known to miss the level, or there is none."""
        known = self.bracket(told)
        return known.reaching - known.missing == 1 and known.certain


def _middle_of_widest_gap(places: Sequence[int]) -> int | None:
    """Of the lowest of the widest; nothing if there is no gap."""
    gaps = [(high - low, -low) for low, high in itertools.pairwise(places)]
    width, low = max(gaps)
    return None if width < 2 else -low + width // 2


@dataclass(frozen=True, slots=True)
class StrategyComparison:
    """Training steps of other ways to the same answer."""

    full_grid: int
    bisection: int
    num_assumed: int
    """Values of the list that were never trained to the end: counted like the nearest on the same side of the answer
    that was, else with their whole budget."""


def compare(strategy: Smallest, steps: Mapping[int, int], budget: int, answer: int) -> StrategyComparison:
    """`steps` are those of values trained to the end, by their place; `answer` is a place, or one past the list."""
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
