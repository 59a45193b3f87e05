"""Conditions that compare two models, or two variants of one.

Further learning rates can only raise an accuracy, up to 1. So a model that has to do well may have untried rates once
it does, but a model that has to do badly must have been trained with all of them.
"""

from dataclasses import dataclass, replace
from statistics import fmean

from orch.analysis.claims.condition import (
    MARGIN,
    ConditionState,
    Finding,
    accuracy_of,
    finding,
    has_result,
    missing,
    number,
)
from orch.analysis.claims.evidence import Evidence, Question
from orch.sweeps.selection import LEARNED


@dataclass(frozen=True, slots=True)
class Exceeds:
    """Condition that the first is better than the second by more than the margin.

    With `needs_room` it is unclear where the second has learned already: then nothing could improve on it.
    """

    first: Question
    second: Question
    label: str
    needs_room: bool = False

    @property
    def questions(self) -> tuple[Question, ...]:
        return self.first, self.second

    @property
    def modulus(self) -> int:
        return self.first.key.modulus

    def check(self, evidence: Evidence, reading: str) -> Finding:
        first, second = (evidence.ask(question, reading) for question in self.questions)
        if first is None or second is None or first.accuracy is None or second.accuracy is None:
            return missing(self, [first, second])
        if _difference(first.accuracy, second.accuracy) > MARGIN:
            outcome = ConditionState.HOLDS if second.settled else ConditionState.MISSING
        elif self.needs_room and second.accuracy >= LEARNED:
            outcome = ConditionState.UNCLEAR
        else:
            outcome = ConditionState.VIOLATED if first.settled or _is_full(second.accuracy) else ConditionState.MISSING
        return finding(self, outcome, _against(first.accuracy, second.accuracy), first, second)


@dataclass(frozen=True, slots=True)
class NoWorse:
    """Condition that the mean of the first cells is at most the margin below the mean of the second cells."""

    first: tuple[Question, ...]
    second: tuple[Question, ...]
    label: str

    @property
    def questions(self) -> tuple[Question, ...]:
        return self.first + self.second

    @property
    def modulus(self) -> int:
        return self.first[0].key.modulus

    def check(self, evidence: Evidence, reading: str) -> Finding:
        pairs = [
            (evidence.ask(one, reading), evidence.ask(other, reading))
            for one, other in zip(self.first, self.second, strict=True)
        ]
        # A scale may leave out some of the cells.
        planned = [(one, other) for one, other in pairs if one is not None and other is not None]
        known = [(one, other) for one, other in planned if has_result(one) and has_result(other)]
        if not planned or len(known) < len(planned):
            return missing(self, [each for pair in planned for each in pair])
        first = fmean(accuracy_of(one) for one, _ in known)
        second = fmean(accuracy_of(other) for _, other in known)
        if _difference(first, second) >= -MARGIN:
            settled = _is_full(first) or all(other.settled for _, other in known)
            outcome = ConditionState.HOLDS if settled else ConditionState.MISSING
        else:
            outcome = ConditionState.VIOLATED if all(one.settled for one, _ in known) else ConditionState.MISSING
        text, answers = _against(first, second), [each for pair in known for each in pair]
        return replace(finding(self, outcome, text, *answers), values=(first, second))


def _is_full(accuracy: float) -> bool:
    """Return whether no accuracy can be better by more than the margin."""
    return _difference(1.0, accuracy) <= MARGIN


def _difference(first: float, second: float) -> float:
    """Return the difference without the rounding error of floats."""
    return round(first - second, 9)


def _against(first: float, second: float) -> str:
    return f"{number(first)} against {number(second)}"
