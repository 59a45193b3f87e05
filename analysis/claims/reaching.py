"""Conditions that a model learns a task, or that it fails."""

from dataclasses import dataclass

from orch.analysis.claims.condition import (
    FAILED,
    ConditionState,
    Finding,
    OfOneCell,
    accuracy_of,
    finding,
    has_result,
    missing,
    number,
)
from orch.analysis.claims.evidence import Evidence, Question
from orch.sweeps.selection import LEARNED


@dataclass(frozen=True, slots=True)
class Learns:
    """Condition that at least one of these cells, which differ only in depth, is learned."""

    questions: tuple[Question, ...]
    label: str

    @property
    def modulus(self) -> int:
        return self.questions[0].key.modulus

    def check(self, evidence: Evidence, reading: str) -> Finding:
        answers = [evidence.ask(question, reading) for question in self.questions]
        best = max((each for each in answers if has_result(each)), key=accuracy_of, default=None)
        if best is None:
            return missing(self, answers)
        if accuracy_of(best) >= LEARNED:
            outcome = ConditionState.HOLDS
        elif all(each is not None and each.settled for each in answers):
            outcome = ConditionState.VIOLATED if accuracy_of(best) < FAILED else ConditionState.UNCLEAR
        else:
            outcome = ConditionState.MISSING
        return finding(self, outcome, number(accuracy_of(best)), best)


@dataclass(frozen=True, slots=True)
class Fails(OfOneCell):
    """Condition that a cell is not learned, by far."""

    def check(self, evidence: Evidence, reading: str) -> Finding:
        answer = evidence.ask(self.question, reading)
        if answer is None or answer.accuracy is None:
            return missing(self, [answer])
        if answer.accuracy >= LEARNED:
            outcome = ConditionState.VIOLATED
        elif not answer.settled:
            outcome = ConditionState.MISSING
        else:
            outcome = ConditionState.HOLDS if answer.accuracy < FAILED else ConditionState.UNCLEAR
        return finding(self, outcome, number(answer.accuracy), answer)
