"""Conditions on two models, or two kinds of one: which does better."""

from dataclasses import dataclass, replace
from statistics import fmean

from analysis.claims.condition import MARGIN, Finding, Outcome, accuracy_of, finding, has_result, missing, number
from analysis.claims.evidence import Evidence, Question
from orchestrator.selection import LEARNED


@dataclass(frozen=True, slots=True)
class Exceeds:
    """The first is better than the second by more than the margin.

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
        if not (first.settled and second.settled):
            outcome = Outcome.MISSING
        elif _difference(first.accuracy, second.accuracy) > MARGIN:
            outcome = Outcome.HOLDS
        else:
            outcome = Outcome.UNCLEAR if self.needs_room and second.accuracy >= LEARNED else Outcome.VIOLATED
        return finding(self, outcome, _against(first.accuracy, second.accuracy), first, second)


@dataclass(frozen=True, slots=True)
class NoWorse:
    """On the mean over several cells, the first are not worse than the second by more than the margin."""

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
        if not all(one.settled and other.settled for one, other in known):
            outcome = Outcome.MISSING
        else:
            outcome = Outcome.HOLDS if _difference(first, second) >= -MARGIN else Outcome.VIOLATED
        told, answers = _against(first, second), [each for pair in known for each in pair]
        return replace(finding(self, outcome, told, *answers), values=(first, second))


def _difference(first: float, second: float) -> float:
    """Two decimals apart are not further apart by a float's rounding."""
    return round(first - second, 9)


def _against(first: float, second: float) -> str:
    return f"{number(first)} against {number(second)}"
