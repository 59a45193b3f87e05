"""The condition on the angles of a trained rotation model."""

from dataclasses import dataclass

from orch.analysis.claims.condition import Condition, ConditionState, Finding, number
from orch.analysis.claims.evidence import Evidence
from orch.core.errors import DamagedFile
from orch.sweeps.selection import LEARNED

OFF_HARMONIC = 0.1
"""Largest mean distance from a harmonic that counts as at harmonics, in steps of the circle; by chance 0.25."""
TURNING_SHARE = 0.5
"""Least share of the readout's weight that must lie on planes that turn."""


@dataclass(frozen=True, slots=True)
class AtHarmonics(Condition):
    """Condition that a trained rotation model turns the planes that it reads by whole steps of the circle."""

    def check(self, evidence: Evidence, reading: str) -> Finding:
        [question] = self.questions
        answer = evidence.ask(question)
        if answer is None or answer.accuracy is None:
            return self.missing([answer])
        if answer.accuracy < LEARNED:
            text = f"an accuracy of {number(answer.accuracy)}, too low to look at the angles"
            return self.finding(ConditionState.MISSING, text, [answer.accuracy])
        for trial_id in (trial_id for trial_id, accuracy in answer.chosen if accuracy >= LEARNED):
            try:
                rotations = evidence.rotations(trial_id, self.modulus)
            except DamagedFile as error:
                return self.finding(ConditionState.MISSING, str(error))
            if rotations is not None:
                off, turning = rotations.off_harmonic, rotations.turning_share
                holds = off < OFF_HARMONIC and turning >= TURNING_SHARE
                text = (
                    f"{off:.3f} steps from a harmonic (by chance 0.25), {turning:.0%} of the readout on turning planes"
                )
                outcome = ConditionState.HOLDS if holds else ConditionState.VIOLATED
                return self.finding(outcome, text, (off, turning), [trial_id])
        text = "no trial of the chosen learning rate has learned it and kept its weights"
        return self.finding(ConditionState.MISSING, text)
