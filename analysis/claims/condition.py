"""Conditions on cells, of which claims consist: each holds, is violated, is unclear, or lacks results.

A model learns a cell at 0.95 or more and fails it below 0.5, half of the way from chance to perfect; between the two it
does neither. Success is final; failure counts only after every planned learning rate was tried, and where there is only
one, every planned seed.
"""

import enum
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import ClassVar

from orch.analysis.claims.evidence import Answer, Evidence, Question
from orch.sweeps.selection import LEARNED

FAILED = 0.5


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
    modulus: int
    text: str
    """The evidence in words."""
    values: tuple[float, ...] = ()
    trial_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Condition(ABC):
    """A condition on the accuracies of some cells, or on two groups of cells that are compared."""

    label: str
    """Name of the condition within its part of the claim."""
    first: tuple[Question, ...]
    second: tuple[Question, ...] = ()
    """Questions about the group that the first is compared with; empty if nothing is compared."""

    @property
    def questions(self) -> tuple[Question, ...]:
        """Every question whose answer the condition needs."""
        return self.first + self.second

    @property
    def controls(self) -> tuple[Question, ...]:
        """Questions of which one must show that the model learns something; empty if the condition needs no control."""
        return ()

    @property
    def modulus(self) -> int:
        """Modulus of the cells, the larger one if there are two."""
        return self.questions[-1].key.modulus

    @abstractmethod
    def check(self, evidence: Evidence, reading: str) -> Finding:
        """Determine whether the condition holds by one reading of the paper."""

    def finding(
        self, outcome: ConditionState, text: str, values: Sequence[float] = (), trial_ids: Iterable[str] = ()
    ) -> Finding:
        """Return a finding about this condition."""
        return Finding(outcome, self.label, self.modulus, text, tuple(values), tuple(filter(None, trial_ids)))

    def measured(self, outcome: ConditionState, accuracies: Sequence[float], trial_ids: Iterable[str]) -> Finding:
        """Return a finding from one accuracy, or from two that were compared."""
        text = " against ".join(map(number, accuracies))
        return self.finding(outcome, text + " so far" * (outcome is ConditionState.MISSING), accuracies, trial_ids)

    def missing(self, answers: Sequence[Answer | None]) -> Finding:
        """Return the finding that there are not enough results."""
        planned = any(answer is not None for answer in answers)
        return self.finding(ConditionState.MISSING, "no result yet" if planned else "not planned")


@dataclass(frozen=True, slots=True)
class Learns(Condition):
    """Condition that at least one of these cells, which differ only in depth, is learned."""

    if_learned: ClassVar[ConditionState] = ConditionState.HOLDS
    if_failed: ClassVar[ConditionState] = ConditionState.VIOLATED

    def check(self, evidence: Evidence, reading: str) -> Finding:
        answers = [evidence.ask(question, reading) for question in self.questions]
        known = [(each.accuracy, each.trial_id) for each in answers if each is not None and each.accuracy is not None]
        if not known:
            return self.missing(answers)
        accuracy, trial_id = max(known, key=itemgetter(0))
        if accuracy >= LEARNED:
            outcome = self.if_learned
        elif not all(each is not None and each.settled for each in answers):
            outcome = ConditionState.MISSING
        else:
            outcome = self.if_failed if accuracy < FAILED else ConditionState.UNCLEAR
        return self.measured(outcome, [accuracy], [trial_id])


class Fails(Learns):
    """Condition that none of these cells is learned, by far: the opposite of `Learns`."""

    __slots__ = ()
    if_learned = ConditionState.VIOLATED
    if_failed = ConditionState.HOLDS


@dataclass(frozen=True, slots=True)
class FailsThoughItLearns(Fails):
    """Condition that none of these cells is learned, by a model that learns another: if nothing trains, nothing fails.

    The control is asked of all seeds together, also where the condition is asked of one.
    """

    others: tuple[Question, ...] = ()
    """Questions about the same model on every task, of which it must have learned one."""

    @property
    def controls(self) -> tuple[Question, ...]:
        return self.others

    def check(self, evidence: Evidence, reading: str) -> Finding:
        found = Fails.check(self, evidence, reading)
        answers = (evidence.whole.ask(question, reading) for question in self.others)
        learned = any(each is not None and (each.accuracy or 0.0) >= LEARNED for each in answers)
        if found.outcome is not ConditionState.HOLDS or learned:
            return found
        return self.finding(ConditionState.MISSING, "failed, but learned no task so far", trial_ids=found.trial_ids)


def number(accuracy: float) -> str:
    """Format an accuracy with two digits, or more if rounding would show a level that it does not reach."""
    digits = 2
    while any(round(accuracy, digits) == level > accuracy for level in (LEARNED, FAILED)):
        digits += 1
    return f"{round(accuracy, digits) + 0.0:.{digits}f}"
