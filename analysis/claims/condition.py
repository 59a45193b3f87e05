"""What a claim says of single cells: each condition holds, is violated, is unclear, or lacks results.

A model learns a cell at 0.95 or more and fails it below 0.5, half of the way from chance to perfect; between the two it
does neither. One that has reached a level stays above it whatever else is trained, but it has failed only once every
learning rate was tried.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from orch.analysis.claims.evidence import Answer, Evidence, Question
from orch.sweeps.selection import LEARNED

FAILED = 0.5
MARGIN = 0.05
"""Accuracies that differ by no more are alike."""


class ConditionState(enum.StrEnum):
    HOLDS = "holds"
    VIOLATED = "violated"
    UNCLEAR = "unclear"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of a condition."""

    outcome: ConditionState
    label: str
    """Which of a part's cells it is about."""
    modulus: int
    told: str
    """The evidence in numbers."""
    values: tuple[float, ...] = ()
    trial_ids: tuple[str, ...] = ()


class Condition(Protocol):
    @property
    def label(self) -> str: ...

    @property
    def modulus(self) -> int: ...

    @property
    def questions(self) -> tuple[Question, ...]: ...

    def check(self, evidence: Evidence, reading: str) -> Finding: ...


@dataclass(frozen=True, slots=True)
class OfOneCell:
    """What a condition on a single cell is about."""

    question: Question
    label: str

    @property
    def questions(self) -> tuple[Question, ...]:
        return (self.question,)

    @property
    def modulus(self) -> int:
        return self.question.key.modulus


def has_result(answer: Answer | None) -> bool:
    return answer is not None and answer.accuracy is not None


def accuracy_of(answer: Answer | None) -> float:
    assert answer is not None, "asked only of what has a result"
    assert answer.accuracy is not None, "asked only of what has a result"
    return answer.accuracy


def number(accuracy: float) -> str:
    """Two digits, and as many more as it takes not to look like a level that was missed."""
    digits = 2
    while any(round(accuracy, digits) == level > accuracy for level in (LEARNED, FAILED)):
        digits += 1
    return f"{round(accuracy, digits) + 0.0:.{digits}f}"


def finding(condition: Condition, outcome: ConditionState, told: str, *answers: Answer | None) -> Finding:
    known = [answer for answer in answers if answer is not None]
    trial_ids = tuple(answer.trial_id for answer in known if answer.trial_id)
    told += " so far" if outcome is ConditionState.MISSING else ""
    return Finding(outcome, condition.label, condition.modulus, told, tuple(map(accuracy_of, known)), trial_ids)


def missing(condition: Condition, answers: Sequence[Answer | None]) -> Finding:
    told = "no result yet" if any(answer is not None for answer in answers) else "not planned"
    return Finding(ConditionState.MISSING, condition.label, condition.modulus, told)
