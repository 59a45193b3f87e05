"""Conditions that compare two models, or two variants of one.

Further learning rates can only raise an accuracy, up to 1. So a model that has to do well may have untried rates once
it does, but a model that has to do badly must have been trained with all of them.
"""

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from orch.analysis.claims.condition import Condition, ConditionState, Finding
from orch.analysis.claims.evidence import Answer, Evidence
from orch.sweeps.selection import LEARNED

MARGIN = 0.05
"""Largest difference between accuracies that count as equal."""
_STATES = {True: ConditionState.HOLDS, False: ConditionState.VIOLATED, None: ConditionState.MISSING}


class _Group(NamedTuple):
    accuracy: float
    """Mean accuracy of the cells."""
    settled: bool
    """Whether every cell was trained with every learning rate."""


@dataclass(frozen=True, slots=True)
class _ComparisonCondition(Condition):
    """Base of conditions on the mean accuracies of two groups of cells, which correspond one to one."""

    def check(self, evidence: Evidence, reading: str) -> Finding:
        pairs = [
            (evidence.ask(one, reading), evidence.ask(other, reading))
            for one, other in zip(self.first, self.second, strict=True)
        ]
        # A scale may leave out some of the cells.
        planned = [(one, other) for one, other in pairs if one is not None and other is not None]
        answers = [each for pair in planned for each in pair]
        if not planned or any(each.accuracy is None for each in answers):
            return self.missing(answers)
        first, second = _group(one for one, _ in planned), _group(other for _, other in planned)
        trial_ids = [each.trial_id for each in answers]
        return self.measured(self.outcome(first, second), (first.accuracy, second.accuracy), trial_ids)

    @abstractmethod
    def outcome(self, first: _Group, second: _Group) -> ConditionState:
        """Return the outcome, given the results of both groups."""


@dataclass(frozen=True, slots=True)
class Exceeds(_ComparisonCondition):
    """Condition that the first group is better than the second by more than the margin.

    With `needs_room` it is unclear where the second has learned already: then nothing could improve on it.
    """

    needs_room: bool = False

    def outcome(self, first: _Group, second: _Group) -> ConditionState:
        if self.needs_room and second.accuracy >= LEARNED:
            return ConditionState.UNCLEAR
        return _STATES[_exceeds(first, second)]


@dataclass(frozen=True, slots=True)
class NoWorse(_ComparisonCondition):
    """Condition that the second group is not better than the first by more than the margin."""

    def outcome(self, first: _Group, second: _Group) -> ConditionState:
        exceeded = _exceeds(second, first)
        return _STATES[None if exceeded is None else not exceeded]


def _group(answers: Iterable[Answer]) -> _Group:
    known = [(each.accuracy, each.settled) for each in answers if each.accuracy is not None]
    return _Group(fmean(accuracy for accuracy, _ in known), all(settled for _, settled in known))


def _exceeds(one: _Group, other: _Group) -> bool | None:
    """Return whether one group is better by more than the margin; None while untried learning rates may change it."""
    if _difference(one.accuracy, other.accuracy) > MARGIN:
        return True if other.settled else None
    return False if one.settled or _difference(1.0, other.accuracy) <= MARGIN else None


def _difference(first: float, second: float) -> float:
    """Return the difference without the rounding error of floats."""
    return round(first - second, 9)
