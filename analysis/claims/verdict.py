"""What becomes of a claim, given evidence."""

import enum
from dataclasses import dataclass

from orch.analysis.claims.claim import Claim, ClaimPart
from orch.analysis.claims.condition import ConditionState, Finding
from orch.analysis.claims.evidence import Evidence


class Verdict(enum.StrEnum):
    SUPPORTED = "supported"
    """Everything that has results holds, and that is enough of it."""
    CONTRADICTED = "contradicted"
    """Something does not hold, clearly."""
    NOT_ENOUGH = "not enough data"
    """Results that it cannot do without are missing, or neither hold nor are violated."""


@dataclass(frozen=True, slots=True)
class PartFindings:
    part: ClaimPart
    findings: tuple[Finding, ...]

    def having(self, *outcomes: ConditionState) -> list[Finding]:
        return [finding for finding in self.findings if finding.outcome in outcomes]

    @property
    def num_lacking(self) -> int:
        """How many more conditions would have to hold."""
        return max(0, self.part.at_least - len(self.having(ConditionState.HOLDS)))


@dataclass(frozen=True, slots=True)
class ClaimReading:
    """A claim by one reading of the paper."""

    name: str
    parts: tuple[PartFindings, ...]

    @property
    def verdict(self) -> Verdict:
        if any(each.having(ConditionState.VIOLATED) for each in self.parts):
            return Verdict.CONTRADICTED
        if any(each.num_lacking or each.having(ConditionState.UNCLEAR) for each in self.parts):
            return Verdict.NOT_ENOUGH
        return Verdict.SUPPORTED


@dataclass(frozen=True, slots=True)
class Judgement:
    claim: Claim
    readings: tuple[ClaimReading, ...]

    @property
    def verdict(self) -> Verdict:
        """The paper means one of the readings: it is contradicted only if each of them is."""
        verdicts = {reading.verdict for reading in self.readings}
        if Verdict.SUPPORTED in verdicts:
            return Verdict.SUPPORTED
        return Verdict.CONTRADICTED if verdicts == {Verdict.CONTRADICTED} else Verdict.NOT_ENOUGH

    @property
    def telling(self) -> tuple[ClaimReading, ...]:
        """The readings that the verdict rests on."""
        return tuple(reading for reading in self.readings if reading.verdict is self.verdict)

    @property
    def moduli(self) -> tuple[int, ...]:
        """That the verdict covers."""
        decided = (ConditionState.HOLDS, ConditionState.VIOLATED)
        findings = [finding for reading in self.telling for each in reading.parts for finding in each.having(*decided)]
        return tuple(sorted({finding.modulus for finding in findings}))

    @property
    def has_results(self) -> bool:
        """Whether there is any number to show for it."""
        findings = [finding for reading in self.readings for each in reading.parts for finding in each.findings]
        return any(finding.values or finding.outcome is not ConditionState.MISSING for finding in findings)

    @property
    def trial_ids(self) -> tuple[str, ...]:
        """The trials whose numbers it rests on."""
        findings = [finding for reading in self.readings for each in reading.parts for finding in each.findings]
        return tuple(dict.fromkeys(trial_id for finding in findings for trial_id in finding.trial_ids))


def judge(claim: Claim, evidence: Evidence) -> Judgement:
    readings = []
    for name in claim.readings:
        parts = (
            PartFindings(part, tuple(condition.check(evidence, name) for condition in part.conditions))
            for part in claim.parts
        )
        readings.append(ClaimReading(name, tuple(parts)))
    # Published numbers are the same by every reading.
    alike = all(reading.parts == readings[0].parts for reading in readings)
    return Judgement(claim, (ClaimReading("", readings[0].parts),) if alike else tuple(readings))
