"""Conditions on cells, of which claims consist: each holds, is violated, is unclear, or lacks results.

A model learns a cell at 0.95 or more and fails it below 0.5, half of the way from chance to perfect; between the two it
does neither. Success is final whatever else is trained; failure counts only after every planned learning
rate was tried.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from orch.analysis.claims.evidence import Answer, Evidence, Question
from orch.sweeps.selection import LEARNED

FAILED = 0.5
MARGIN = 0.05
"""Largest difference between accuracies that count as equal."""


class ConditionState(enum.StrEnum):
    HOLDS = "holds"
    VIOLATED = "violated"
    UNCLEAR = "unclear"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of a condition, with its evidence."""

    outcome: ConditionState
    label: str
    """Name of the cell within its part of the claim."""
    modulus: int
    text: str
    """The evidence in words."""
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
    """Base of conditions on a single cell."""

    question: Question
    label: str

    @property
    def questions(self) -> tuple[Question, ...]:
        return (self.question,)

    @property
    def modulus(self) -> int:
        return self.question.key.modulus


def has_result(answer: Answer | None) -> bool:
    """Return whether a trial of the cell is finished."""
    return answer is not None and answer.accuracy is not None


def accuracy_of(answer: Answer | None) -> float:
    """Return the accuracy of an answer that has a result."""
    assert answer is not None, "asked only of what has a result"
    assert answer.accuracy is not None, "asked only of what has a result"
    return answer.accuracy


def number(accuracy: float) -> str:
    """Format an accuracy with two digits, or more if rounding would show a level that it does not reach."""
    digits = 2
    while any(round(accuracy, digits) == level > accuracy for level in (LEARNED, FAILED)):
        digits += 1
    return f"{round(accuracy, digits) + 0.0:.{digits}f}"


def finding(condition: Condition, outcome: ConditionState, text: str, *answers: Answer | None) -> Finding:
    """Return the finding of a condition from the answers that it rests on."""
    known = [answer for answer in answers if answer is not None]
    trial_ids = tuple(answer.trial_id for answer in known if answer.trial_id)
    text += " so far" if outcome is ConditionState.MISSING else ""
    return Finding(outcome, condition.label, condition.modulus, text, tuple(map(accuracy_of, known)), trial_ids)


def missing(condition: Condition, answers: Sequence[Answer | None]) -> Finding:
    """Return the finding of a condition without enough results."""
    text = "no result yet" if any(answer is not None for answer in answers) else "not planned"
    return Finding(ConditionState.MISSING, condition.label, condition.modulus, text)
