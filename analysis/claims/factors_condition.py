"""The condition on the number of factors that a state machine needs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from orch.analysis.claims.condition import Condition, ConditionState, Finding
from orch.analysis.claims.evidence import Evidence, Question
from orch.sweeps.selection import LEARNED


@dataclass(frozen=True, slots=True)
class NeedsMoreFactors(Condition):
    """Condition that the second state machine, the larger one, needs more factors than the first.

    It is unclear if both need equally many. Questions are sorted by the number of factors, the fewest first.
    """

    def check(self, evidence: Evidence, reading: str) -> Finding:
        smaller, larger = (_fewest_factors(questions, evidence) for questions in (self.first, self.second))
        if smaller is None or larger is None:
            return self.missing([evidence.ask(question) for question in self.questions])
        (few, trials), (many, more_trials) = smaller, larger
        if few == many:
            outcome = ConditionState.UNCLEAR
        else:
            outcome = ConditionState.HOLDS if few < many else ConditionState.VIOLATED
        words = [str(count) if math.isfinite(count) else "more than were tried" for count in (few, many)]
        return self.finding(outcome, f"need {' and '.join(words)}", trial_ids=trials + more_trials)


def _fewest_factors(questions: Sequence[Question], evidence: Evidence) -> tuple[float, list[str]] | None:
    """Return the fewest factors that track a machine, with the trials that show it; None while fewer might suffice."""
    trials: list[str] = []
    planned = [(question, answer) for question in questions if (answer := evidence.ask(question)) is not None]
    for question, answer in planned:
        if answer.accuracy is None:
            return None
        trials.append(answer.trial_id)
        if answer.accuracy >= LEARNED:
            return int(question.key.variant), trials
        if not answer.settled:
            return None
    return (math.inf, trials) if planned else None
