"""Which point to ask for next, given all that was told. Pure: the same history has the same answer."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from orch.search.history import Point, PointState, Told
from orch.search.space import Params


@dataclass(frozen=True, slots=True)
class Ask:
    """A point to be found: settings that it must have, the others are the sampler's to choose."""

    fixed: Params = field(default_factory=dict)
    to_the_end: bool = False
    """Train it without pruning, though it may have been pruned before."""


class Strategy(Protocol):
    num_points: int
    """At most so many."""

    def next(self, told: Sequence[Told], under_way: Sequence[Point]) -> Ask | None:
        """What to ask for now; nothing while there is nothing to ask, or when all is known."""
        ...

    def pointless(self, point: Point, told: Sequence[Told]) -> str:
        """Why training a point on would tell nothing; empty if it would."""
        ...


class Best:
    """The best of so many points, wherever the sampler looks."""

    def __init__(self, num_points: int):
        self.num_points = num_points

    def next(self, told: Sequence[Told], under_way: Sequence[Point]) -> Ask | None:
        num_taken = sum(each.state is not PointState.INVALID for each in told) + len(under_way)
        return Ask() if num_taken < self.num_points else None

    def pointless(self, point: Point, told: Sequence[Told]) -> str:
        return ""
