"""The condition on the number of factors that a state machine needs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from orch.analysis.claims.condition import ConditionState, Finding, missing
from orch.analysis.claims.evidence import Evidence, Question
from orch.sweeps.selection import LEARNED


@dataclass(frozen=True, slots=True)
class NeedsMoreFactors:
    """Condition that the larger machine needs more factors than the smaller; unclear if both need as many."""

    smaller: tuple[Question, ...]
    larger: tuple[Question, ...]
    """Questions by number of factors, the fewest first."""
    label: str

    @property
    def questions(self) -> tuple[Question, ...]:
        return self.smaller + self.larger

    @property
    def modulus(self) -> int:
        return self.larger[0].key.modulus

    def check(self, evidence: Evidence, reading: str) -> Finding:
        fewest = [_fewest_factors(questions, evidence) for questions in (self.smaller, self.larger)]
        if fewest[0] is None or fewest[1] is None:
            return missing(self, [evidence.ask(question) for question in self.questions])
        (few, its_trials), (many, more_trials) = fewest[0], fewest[1]
        outcome = (
            ConditionState.HOLDS if few < many else ConditionState.UNCLEAR if few == many else ConditionState.VIOLATED
        )
        text = "with " + ", then ".join(
            str(number) if math.isfinite(number) else "none suffices" for number in (few, many)
        )
        return Finding(outcome, self.label, self.modulus, text, (), its_trials + more_trials)


def _fewest_factors(questions: Sequence[Question], evidence: Evidence) -> tuple[float, tuple[str, ...]] | None:
    """Return the fewest factors that track a machine, with the trials that show it; None while fewer might suffice."""
    trials: list[str] = []
    planned = [(question, answer) for question in questions if (answer := evidence.ask(question)) is not None]
    for question, answer in planned:
        if answer.accuracy is None:
            return None
        trials.append(answer.trial_id)
        if answer.accuracy >= LEARNED:
            return int(question.key.variant), tuple(trials)
        if not answer.settled:
            return None
    return (math.inf, tuple(trials)) if planned else None
